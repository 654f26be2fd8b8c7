"""What may start, in an environment that has JupyterHub and KubeSpawner: `python -m unittest`."""

import os
import tempfile
import time
import unittest
from unittest import mock

from quartermaster_jupyterhub import Portal, PortalSpawner, profiles
from quartermaster_jupyterhub.asking import Answer, Refusal
from quartermaster_jupyterhub.choosing import Refused, check, without_gpus
from quartermaster_jupyterhub.matching import SECONDS, matches
from traitlets.config import Config

GPUS = {"extra_resource_limits": {"nvidia.com/gpu": "1"}}
CPU = {"slug": "cpu", "display_name": "Small", "kubespawner_override": {"cpu_limit": 1}}
GPU = {"slug": "gpu", "display_name": "Big", "kubespawner_override": GPUS}


def with_option(**option: object) -> dict[str, object]:
    """A profile with one option."""
    return {**CPU, "profile_options": {"image": {"display_name": "Image", **option}}}


class WithoutGpus(unittest.TestCase):
    """What is left while the portal is away."""

    def test_a_device_in_whichever_choice_or_container_leaves_a_profile_out(
        self,
    ) -> None:
        elsewhere = [
            GPUS,
            {"extra_resource_guarantees": {"amd.com/gpu": "1"}},
            {
                "extra_container_config": {
                    "resources": {"limits": {"nvidia.com/mig-1g.10gb": 1}}
                }
            },
            {
                "extra_containers": [
                    {"name": "x", "resources": {"requests": {"habana.ai/gaudi": 1}}}
                ]
            },
        ]
        for override in elsewhere:
            choice = with_option(
                choices={
                    "one": {"display_name": "One", "kubespawner_override": override}
                }
            )
            free = with_option(
                unlisted_choice={"enabled": True, "kubespawner_override": override}
            )
            own = {**CPU, "kubespawner_override": override}
            self.assertEqual(without_gpus([own, choice, free, CPU]), [CPU], override)

    def test_what_every_node_has_is_no_device(self) -> None:
        plain = {
            **CPU,
            "kubespawner_override": {
                "extra_resource_limits": {
                    "ephemeral-storage": "1Gi",
                    "hugepages-2Mi": "1",
                }
            },
        }
        labels = {
            **CPU,
            "kubespawner_override": {
                "extra_labels": {"kueue.x-k8s.io/queue-name": "default"}
            },
        }
        self.assertEqual(without_gpus([plain, labels, GPU]), [plain, labels])


class Check(unittest.TestCase):
    """Which choices are refused, and how."""

    def refused(
        self,
        options: object,
        *profiles: dict[str, object],
        status: int = 400,
        **more: object,
    ) -> str:
        """The sentence of a refusal."""
        with self.assertRaises(Refused) as caught:
            check(options, [*profiles], **more)
        self.assertEqual(caught.exception.status, status)
        return caught.exception.why

    def test_no_choice_is_the_default_profile(self) -> None:
        self.assertEqual(check({}, [GPU, {**CPU, "default": True}]), [])
        self.refused(
            {"image": "x"}, {**with_option(choices={"a": {}}), "default": True}, GPU
        )

    def test_without_profiles_nothing_starts(self) -> None:
        self.assertEqual(
            self.refused({}, status=403, reason="You left."),
            "No profile is offered to you. You left.",
        )
        self.assertIn(
            "does not answer",
            self.refused({"profile": "gpu"}, CPU, status=403, is_away=True),
        )

    def test_choices_are_words(self) -> None:
        for wrong in (
            ["cpu"],
            "cpu",
            {"profile": ["cpu"]},
            {"profile": "cpu", "image": {"a": 1}},
            {"profile": 1},
        ):
            self.refused(wrong, CPU)

    def test_an_option_without_choices_needs_a_value(self) -> None:
        free = with_option(
            unlisted_choice={"enabled": True, "validation_regex": "[a-z]+"}
        )
        self.assertIn("Write what you want", self.refused({"profile": "cpu"}, free))
        [found] = check({"profile": "cpu", "image--unlisted-choice": "abc"}, [free])
        self.assertEqual((found.value, found.pattern), ("abc", "[a-z]+"))


class Matching(unittest.IsolatedAsyncioTestCase):
    """Patterns and what people type."""

    async def test_all_of_a_value_has_to_match(self) -> None:
        self.assertTrue(await matches("", "anything"))
        self.assertTrue(await matches("^a+$", "aaa"))
        for value in ("aab", "aa\n", ""):
            self.assertFalse(await matches("^a+$", value), value)
        self.assertFalse(await matches("(", "("))

    async def test_a_pattern_that_takes_for_ever_does_not_match(self) -> None:
        began = time.monotonic()
        self.assertFalse(await matches("(a+)+$", "a" * 60 + "!"))
        self.assertLess(time.monotonic() - began, SECONDS + 20)


class Asking(unittest.IsolatedAsyncioTestCase):
    """A portal that is not there, or not set."""

    async def test_without_an_address_or_a_key_nobody_is_offered_anything(self) -> None:
        for config in (
            Config(),
            Config({"Portal": {"url": "http://127.0.0.1:9"}}),
            Config({"Portal": {"key": "a\nb"}}),
        ):
            answer = await Portal(config=config).ask("ada")
            self.assertEqual((answer.profiles, answer.is_away), ([], True))


class Remembered(unittest.TestCase):
    """What an answer for one server is to another one."""

    def setUp(self) -> None:
        own = {"HF_TOKEN": {"valueFrom": {}}, "EPOCHS": "3"}
        override = {**CPU["kubespawner_override"], "environment": own}
        self.plain = {**GPU, "kubespawner_override": {"environment": {"A": "b"}}}
        self.answer = Answer(
            [{**CPU, "kubespawner_override": override}, self.plain],
            server="nb-0123456789ab",
            variables=frozenset({"HF_TOKEN"}),
        )

    def test_its_own_server_has_its_variables(self) -> None:
        self.assertIs(self.answer.for_server("nb-0123456789ab"), self.answer.profiles)

    def test_another_one_has_those_of_the_profile_alone(self) -> None:
        for name in ("", "mine", "nb-1"):
            first, second = self.answer.for_server(name)
            kept = first["kubespawner_override"]
            self.assertEqual(kept, {"cpu_limit": 1, "environment": {"EPOCHS": "3"}})
            self.assertEqual(second, self.plain)
        # What is remembered stays as it was.
        self.assertIn(
            "HF_TOKEN",
            self.answer.profiles[0]["kubespawner_override"]["environment"],
        )

    def test_one_of_the_portals_has_nothing_as_its_variables_are_not_known(
        self,
    ) -> None:
        self.assertEqual(self.answer.for_server("nb-ba9876543210"), [])


class Profiles(unittest.IsolatedAsyncioTestCase):
    """The list for a KubeSpawner without the mixin."""

    async def test_a_form_without_profiles_is_empty_and_a_start_without_any_is_refused(
        self,
    ) -> None:
        user = mock.Mock(get_auth_state=mock.AsyncMock(return_value=None))
        user.name = "ada"
        for pending in (None, "spawn"):
            spawner = mock.Mock(config=Config(), user=user, pending=pending)
            spawner.name = ""
            if pending is None:
                self.assertEqual(await profiles(spawner), [])
                continue
            with self.assertRaises(Refusal) as caught:
                await profiles(spawner)
            self.assertEqual(caught.exception.status_code, 403)
            self.assertIn("does not answer", caught.exception.jupyterhub_message)


class Keys(unittest.TestCase):
    """The key of the hub."""

    def test_a_file_with_a_new_key_counts_at_once(self) -> None:
        with (
            tempfile.NamedTemporaryFile("w") as file,
            mock.patch.dict(os.environ, QUARTERMASTER_KEY_FILE=file.name),
        ):
            portal = Portal()
            self.assertEqual(portal.current_key(), "")
            file.write("qmh_new\n")
            file.flush()
            self.assertEqual(portal.current_key(), "qmh_new")


class Settings(unittest.TestCase):
    """What the spawner sets by itself."""

    def test_a_start_may_wait_for_a_week(self) -> None:
        self.assertEqual(
            PortalSpawner.__new__(PortalSpawner).start_timeout, 7 * 24 * 3600
        )


if __name__ == "__main__":
    unittest.main()
