"""Secret parameters of a pipeline: what is sealed, what is refused, and what a step gets and leaves behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet

from domain.errors import Invalid
from domain.parameters import Parameter, ParameterType
from domain.run import RunState
from domain.secrets import MASK
from executors.pipeline import PipelineExecutor
from executors.protocol import Payload, Refused
from executors.vault import Vault
from tests.executors.test_pipeline import PAYLOAD, REFERENCE, Catalogue, Ran, pipeline, script

SECRET = "correct horse\nbattery staple"  # noqa: S105  it opens nothing
KEYS = Vault((Fernet.generate_key().decode(),))
TOKEN = Parameter(name="token", type=ParameterType.STRING, secret=True)
SAYS_IT = 'printf "%s|" "$ALMANAC_PARAMETER_TOKEN"; echo battery staple >&2; printf "correct "; sleep 0.05; echo horse'


def executor(vault: Vault | None = KEYS, *, secret: bool = True) -> PipelineExecutor:
    declared = TOKEN.model_copy(update={"secret": secret})
    closing = pipeline(script("say", SAYS_IT)).model_copy(update={"parameters": (declared,)})
    return PipelineExecutor(Catalogue(finance__close=closing, other=closing), vault)


def giving(value: Any, **more: Any) -> Payload:
    return {**PAYLOAD, "parameters": {"token": value}, **more}


async def sealed(value: Any = SECRET, before: Payload = PAYLOAD) -> Payload:
    return await executor().seal("acme", giving(value), before)


async def test_a_step_gets_the_secret_and_leaves_the_mask(tmp_path: Path) -> None:
    ran, payload = Ran(tmp_path), await sealed()
    prepared = await executor().prepare("acme", payload, REFERENCE)
    assert prepared.snapshot["resolved_parameters"] == {"token": MASK}
    assert (await ran.outcome(executor(), payload)).state is RunState.SUCCEEDED
    assert ran.output("say") == f"{MASK}|{MASK}\n"
    assert (ran.folder / "steps/say/stderr.log").read_text() == f"{MASK}\n"
    left = [file.read_text() for file in ran.folder.rglob("*") if file.is_file()]
    assert left
    assert not any(word in text for text in left for word in ("correct horse", "battery staple"))
    assert f'"token": "{MASK}"' in (ran.folder / "steps/say/parameters-1.json").read_text()


async def test_the_mask_and_the_same_value_keep_what_was_sealed() -> None:
    before = await sealed()
    assert SECRET not in str(before)
    assert await sealed(MASK, before) == before
    assert await sealed(SECRET, before) == before
    assert await sealed("another one", before) != before
    assert await sealed(None, before) == giving(None)


@pytest.mark.parametrize(
    ("value", "before", "code"),
    [
        (MASK, PAYLOAD, "secret_unknown"),
        (MASK, {**PAYLOAD, "pipeline": "other", "parameters": {"token": {"sealed": "x"}}}, "secret_unknown"),
        ({"sealed": "x"}, PAYLOAD, "parameters_invalid"),
        ("abc", PAYLOAD, "parameters_invalid"),
        ("abc\0def", PAYLOAD, "parameters_invalid"),
    ],
)
async def test_what_can_not_be_sealed_is_refused(value: Any, before: Payload, code: str) -> None:
    with pytest.raises(Invalid) as refused:
        await sealed(value, before)
    assert refused.value.code == f"schedule.validation.{code}"
    assert refused.value.field == "payload.parameters.token"


async def test_without_a_key_no_secret_is_saved() -> None:
    with pytest.raises(Invalid) as refused:
        await executor(None).seal("acme", giving(SECRET), PAYLOAD)
    assert refused.value.code == "schedule.validation.secret_key_missing"


@pytest.mark.parametrize("vault", [None, Vault((Fernet.generate_key().decode(),))])
async def test_a_secret_that_does_not_open_is_refused_when_saved_and_when_run(vault: Vault | None) -> None:
    payload = await sealed()
    with pytest.raises(Invalid) as invalid:
        await executor(vault).validate("acme", payload)
    assert invalid.value.code == "schedule.validation.secret_unreadable"
    with pytest.raises(Refused) as refused:
        await executor(vault).prepare("acme", payload, REFERENCE)
    assert refused.value.reason == "parameters_invalid"


async def test_a_parameter_that_became_secret_or_ceased_to_be_is_given_anew() -> None:
    with pytest.raises(Refused, match="save it again") as became:
        await executor().prepare("acme", giving(SECRET), REFERENCE)
    with pytest.raises(Refused) as ceased:
        await executor(secret=False).prepare("acme", await sealed(), REFERENCE)
    assert became.value.reason == ceased.value.reason == "parameters_invalid"
    assert "correct horse" not in became.value.message
