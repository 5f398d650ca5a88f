"""The versions of Kafka: rules and settings by the version that they came with."""

import pytest

from coordinator_core.coordinator.config import CoordinatorConfig
from coordinator_core.coordinator.kafka_versions import SETTINGS_SINCE, SINCE, VERSIONS, Rule
from coordinator_core.coordinator.reconcile.settings import OF_GROUP, ReconcileSettings
from coordinator_core.errors import InputError
from coordinator_core.reading.settings import settings_of

NEW = {"group.consumer.assignment.interval.ms": "4.3", "group.consumer.regex.refresh.interval.ms": "4.1"}


def test_the_newest_version_has_every_rule_and_is_the_default():
    assert CoordinatorConfig().kafka == ReconcileSettings().kafka == VERSIONS[-1] == "4.4"
    assert all(CoordinatorConfig().has(rule) for rule in Rule)


def test_a_rule_is_one_of_its_version_and_of_all_later_ones():
    assert list(SINCE) == list(Rule)
    for rule, since in SINCE.items():
        having = [version for version in VERSIONS if CoordinatorConfig(kafka=version).has(rule)]
        assert having == list(VERSIONS[VERSIONS.index(since) :])


@pytest.mark.parametrize("kind", [CoordinatorConfig, ReconcileSettings])
@pytest.mark.parametrize("version", ["4", "3.9", "4.4.0", "", 4.2])
def test_an_unknown_version_is_refused(kind, version):
    with pytest.raises(InputError, match=r"kafka: found .*, expected one of 4\.0, 4\.1, 4\.2, 4\.3, 4\.4"):
        kind(kafka=version)


@pytest.mark.parametrize(("name", "since"), NEW.items())
def test_a_setting_of_a_later_version_is_refused_with_both_versions(name, since):
    (field,) = (f for f in settings_of(ReconcileSettings).values() if f.encode_name == name)
    before = VERSIONS[VERSIONS.index(since) - 1]
    assert getattr(ReconcileSettings(kafka=since, **{field.name: 12_000}), field.name) == 12_000
    with pytest.raises(InputError, match=rf"{name}: found 12000, .* Kafka {since} .* not {before}"):
        ReconcileSettings(kafka=before, **{field.name: 12_000})


def test_a_setting_of_a_group_is_refused_by_a_version_without_it():
    own = {"consumer.assignment.interval.ms": 0}
    assert ReconcileSettings(kafka="4.3").of_group(own).assignment_interval_ms == 0
    with pytest.raises(InputError, match=r"consumer\.assignment\.interval\.ms: .*not 4\.2"):
        ReconcileSettings(kafka="4.2").of_group(own)


def test_every_setting_with_a_version_exists():
    assert SETTINGS_SINCE.keys() <= settings_of(ReconcileSettings).keys() | OF_GROUP.keys()
