"""Placeholder until the read model is merged."""


async def upgrade(url: str) -> None:
    """Nothing to migrate yet."""
