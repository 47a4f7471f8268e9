"""How a worker writes and reads payloads: as everybody does, with what it has once prepared for a type kept."""

from __future__ import annotations

from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.converter import CompositePayloadConverter, DataConverter

_PREPARED = tuple(PydanticPayloadConverter().converters.values())


class PayloadConverter(CompositePayloadConverter):
    """The same on the wire as `pydantic_data_converter`. The SDK makes a converter anew for every task of a workflow,
    and with it all that pydantic prepares for a type; here they share that."""

    def __init__(self) -> None:
        super().__init__(*_PREPARED)


DATA_CONVERTER = DataConverter(payload_converter_class=PayloadConverter)
