"""The pipelines as executions see them: the read model's, in the words of the pipeline executor."""

from __future__ import annotations

from dataclasses import dataclass

from domain.errors import Conflict, NotFound
from domain.pipeline import PipelineVersion
from executors.pipeline import PipelineMissing, PipelineUnreleased
from readmodel.pipelines import Pipelines


@dataclass(frozen=True)
class Catalogue:
    pipelines: Pipelines

    async def current(self, workspace: str, pipeline: str) -> PipelineVersion:
        try:
            return await self.pipelines.current(workspace, pipeline)
        except NotFound as error:
            raise PipelineMissing from error
        except Conflict as error:
            raise PipelineUnreleased from error

    async def draft_sha256(self, workspace: str, pipeline: str) -> str | None:
        return await self.pipelines.draft_sha256(workspace, pipeline)
