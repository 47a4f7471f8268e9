"""How every domain value behaves: immutable, compared by content, no unknown fields.

A value travels unchanged from a request body through a Temporal Update into workflow state, activity
arguments and the read model, so its fields are plain JSON types and its shape is the wire contract.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
