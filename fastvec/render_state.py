"""What Gymnasium's renderers read beside an env's state and numbers: one function for each kind of env that has such.

They are values of ``NativeEnv.render_state`` in registry.py; rendering.py calls them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class DrawnLane:
    """What is known of a lane that is about to be drawn.

    Attributes:
        state: the lane's state columns by name, one number each.
        action: the action of the lane's last step; None where it was reset since.
        memory: the lane's own dict, kept from frame to frame and emptied when the lane is reset: for renderers that
            remember what they drew.
    """

    state: dict[str, Any] = field(default_factory=dict)
    action: Any = None
    memory: dict[str, Any] = field(default_factory=dict)


def last_action(env: Any, lane: DrawnLane) -> None:
    """FrozenLake and CliffWalking."""
    env.lastaction = lane.action


def taxi(env: Any, lane: DrawnLane) -> None:
    """Taxi turns its car when it draws it after a move, and leaves it so in the frames after other actions."""
    env.lastaction = lane.action
    if lane.action is not None and lane.action < 4:
        lane.memory["taxi_orientation"] = lane.action
    env.taxi_orientation = lane.memory.get("taxi_orientation", 0)


def blackjack(env: Any, lane: DrawnLane) -> None:
    """Blackjack shows the dealer's first card, and of the player's the sum and whether there is a usable ace."""
    state = lane.state
    total = state["player_sum"]
    env.player = [1, total - 1] if state["player_has_ace"] else [total]
    env.dealer = [state["dealer_card"]]
    env.dealer_top_card_suit = "CDHS"[state["dealer_suit"]]
    card = state["dealer_card"]
    env.dealer_top_card_value_str = "A" if card == 1 else "JQK"[state["dealer_face"]] if card == 10 else str(card)
