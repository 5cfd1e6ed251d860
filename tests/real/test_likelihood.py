"""llama.cpp takes `echo` and ignores it: that is found out, and not taken for a likelihood."""

import pytest

from evenhand import Endpoint
from evenhand.core.errors import UserError
from evenhand.models.likelihood import EchoedLikelihood
from tests.errors import raises_naming

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(600)]


async def test_a_real_server_that_does_not_echo_is_refused_with_what_to_do(
    local_server: str,
) -> None:
    model = EchoedLikelihood(Endpoint(local_server, model="smollm2"))
    try:
        with raises_naming(UserError, "the prompt", "--weights"):
            await model.check()
    finally:
        await model.close()
