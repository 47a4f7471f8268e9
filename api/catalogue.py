"""Shows the read model's pipelines to the executor that checks payloads, in the executor's own words."""

from __future__ import annotations

from domain.errors import Conflict, NotFound
from domain.pipeline import PipelineVersion
from executors.pipeline import PipelineMissing, PipelineUnreleased
from readmodel.pipelines import Pipelines


class ReleasedPipelines:
    def __init__(self, pipelines: Pipelines) -> None:
        self._pipelines = pipelines

    async def current(self, workspace: str, pipeline: str) -> PipelineVersion:
        """What the pipeline's current pointer names now. Raises PipelineMissing or PipelineUnreleased."""
        try:
            return await self._pipelines.current(workspace, pipeline)
        except NotFound as error:
            raise PipelineMissing from error
        except Conflict as error:
            raise PipelineUnreleased from error
