"""What the reference says where the code has no sentence of its own, because the name says it to a programmer.

A sentence here gives way to one that the code gains; a test finds what neither has.
"""

from __future__ import annotations

FIELDS = {
    "ScheduleDefinition.name": "A path such as `finance/daily/revenue`; unique in its workspace in any case.",
    "ScheduleDefinition.timezone": "An IANA region id (`Area/Place`) or `UTC`.",
    "ScheduleDefinition.executor": "Who knows what the payload means.",
    "ScheduleDefinition.payload": 'For `pipeline`: `{"pipeline": "<name>", "version": "current"}`, and '
    "`parameters` and `parameter_bindings`, see [parameters](#parameters); `groups` and `step` for a part of it. "
    "For `review`: see [reviews](evidence.md#reviews). For `workflow`: see [workflows](workflows.md).",
    "ScheduleDefinition.missed_policy": "What becomes of occurrences that nobody could act on.",
    "ScheduleDefinition.lateness_seconds": "So late an occurrence is still simply due; so long a run is offered to a "
    "worker with a free slot.",
    "ScheduleDefinition.catch_up_max_age_seconds": "Under `latest`: how old the latest missed occurrence may be.",
    "ScheduleDefinition.collision_policy": "What becomes of an occurrence that finds its lane held.",
    "ScheduleDefinition.admission": "`sequential` takes its turn on the lane of its target; `parallel` does not.",
    "ScheduleDefinition.max_start_delay_minutes": "A pending run is not worth starting later than this.",
    "ScheduleDefinition.execution_timeout_seconds": "A longer execution is stopped and has failed.",
    "ScheduleDefinition.after_terminal_status": "Which ends of a parent release.",
    "ScheduleDefinition.notes": "For people.",
    "PipelineDefinition.name": "A path of lower-case words; also the folder of its runs.",
    "PipelineDefinition.description": "For people.",
    "PipelineDefinition.parameters": "What a payload has to give or may give.",
    "Parameter.name": "Letters, digits and `_`; upper and lower case are the same.",
    "Parameter.type": "See below.",
    "Parameter.default": "Its value where a payload gives none.",
    "PipelineDefinition.steps": "What is run; each step after the steps that it needs, up to four at a time.",
    "Step.id": "Lower-case letters, digits, `-` and `_`; unique in the pipeline.",
    "Step.command": "The program and its arguments, as given: no shell reads them.",
    "Step.http": "A request that is sent instead of running a program, see [requests](#requests).",
    "Step.workflow": "A Temporal workflow that is started instead, see [workflows as steps](#workflows-as-steps).",
    "HttpRequest.method": "How it is sent.",
    "HttpRequest.headers": "By name. Who receives it is told the run besides.",
    "Step.environment": "Variables for the program, besides those below.",
    "Step.needs": "Steps that have to succeed before this one starts.",
    "Step.timeout_seconds": "The step's own timeout, within that of the run.",
    "Step.retry": "Trying it again when it fails: `{attempts, pause_seconds}`; only where it is idempotent.",
    "WorkerSettings.database_url": "`postgresql+asyncpg://user:password@host/database`.",
    "WorkerSettings.temporal_address": "`host:port` of Temporal's frontend.",
    "WorkerSettings.temporal_namespace": "Where the workflows live.",
    "WorkerSettings.secret_key_file": "The keys of secret parameters, a line each; the same in all processes.",
    "WorkerSettings.storage": "The folder of all run folders; every worker has to see the same one.",
    "WorkerSettings.worker_name": "How trails name this worker; the machine's name unless set.",
    "Settings.api_host": "The address the API listens on.",
    "Settings.api_port": "The port it listens on.",
    "Settings.max_schedules_per_workspace": "How many schedules a workspace may have.",
    "Settings.max_body_bytes": "A larger request body is refused.",
}

STATES = {
    "succeeded": "The execution succeeded.",
    "failed": "The execution failed.",
    "cancelled": "Somebody cancelled it.",
}

CODES = {
    "api.not_ready": "The database or Temporal does not answer; the problem names which.",
    "apply.name_duplicate": "Two documents have the same kind and name.",
    "schedule.validation.cron_name": "A name that is not of this field.",
    "schedule.validation.cron_range_reversed": "A range that runs backwards, such as `22-2`; the hint spells it.",
    "schedule.validation.executor_unknown": "There is no such executor here; the hint has the names.",
    "schedule.validation.name_invalid": "The name is not a path of printable parts.",
    "schedule.validation.binding_conflict": "A parameter has both a value and a binding.",
    "schedule.validation.binding_invalid": "A binding that there is none of, or of what is no DATE parameter.",
    "schedule.validation.parameters_invalid": "A value is missing, of another type, or for no parameter.",
    "schedule.validation.secret_unreadable": "What was sealed does not open with the present key, or there is none.",
    "schedule.validation.payload_invalid": "The executor can't make sense of the payload; `field` says where.",
    "schedule.validation.zone_abbreviation": "An abbreviation such as `CET`, which names no region.",
    "embedded.port_in_use": "The port that was asked for, or every usual one, is taken.",
    "embedded.start_failed": "A part ended while it started, or was not ready in time.",
}
