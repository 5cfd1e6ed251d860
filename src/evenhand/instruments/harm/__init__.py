"""Custom harm policies: a policy in words and labeled examples become a judge whose errors are
measured before it may steer or report anything."""

from evenhand.instruments.harm.certificate import certified_judge
from evenhand.instruments.harm.policy import HarmConfig, HarmName, OwnHarm, own_harm

__all__ = ["HarmConfig", "HarmName", "OwnHarm", "certified_judge", "own_harm"]
