# SPDX-License-Identifier: Apache-2.0
"""The table that bench/run prints."""
import statistics

rows = []


def show(what, ours, peer, value, target, is_met):
    """One line of the table, printed as soon as it is known. is_met None: for information."""
    verdict = "" if is_met is None else "ok" if is_met else "MISS"
    rows.append((what, ours, peer, value, target, verdict))
    print(f"{what:34} {ours:>18} {peer:>18} {value:>10} {target:>10}  {verdict}", flush=True)


def show_ratio(what, ours, peer, unit, least):
    ratio = ours / peer
    show(what, f"{ours:,.0f} {unit}", f"{peer:,.0f} {unit}", f"{ratio:.2f}", f">= {least:.2f}", ratio >= least)


def show_pairs(what, ours, peer, unit, least):
    """Of measurements taken in turn: the middle of each side, and of the ratios of the pairs."""
    ratio = statistics.median(a / b for a, b in zip(ours, peer))
    show(what, f"{statistics.median(ours):,.0f} {unit}", f"{statistics.median(peer):,.0f} {unit}", f"{ratio:.2f}", f">= {least:.2f}", ratio >= least)


def show_most(what, value, unit, most):
    show(what, f"{value:,.1f} {unit}", "", "", f"< {most} {unit}", value < most)
