"""Ours beside the best of each opponent: chosen with one set of queries, reported with another, measured in turn."""

import json
import statistics
import sys

GOALS = [("recall", 0.85), ("recall", 0.90), ("recall", 0.95), ("cdr", 0.985)]
ROUNDS = 5


def key(line):
    """What a line is about, whoever measured it and when."""
    return line["peer"], json.dumps(line.get("build")), json.dumps(line.get("search")), line.get("setting")


def label(line):
    parts = [", ".join(f"{name} {value}" for name, value in (line.get(part) or {}).items()) for part in ("build", "search")]
    return " ".join([line["peer"], line.get("setting") or ": ".join(filter(None, parts))]).strip()


def tuning(bench, earlier):
    """Every setting with set a: as in the file of results, the latest of each; ours is measured now."""
    bits, rows, queries = bench.rows.shape[1] * 8, len(bench.rows), bench.sets["a"].hash
    # The hash tells whether they were the very same queries.
    known = [line for line in earlier if line.get("queries") == queries and line["bits"] == bits and line["batch"] == 1]
    # An index of fewer rows is no opponent.
    lines = {key(line): line for line in known if line["rows"] == rows and line["peer"] != "ours"}
    if not lines:
        lines = {key(line): line for line in filter(None, bench.peers()) if line["set"] == "a" and line["batch"] == 1}
    if bench.options.ours:
        lines.update((key(line), line) for line in bench.ours(bench.sets["a"]))
    return list(lines.values())


def fastest(lines, peer, measure, least):
    reach = [line for line in lines if line["peer"] == peer and line[measure] >= least]
    return min(reach, key=lambda line: line["ms"], default=None)


def again(bench, line, asked):
    """One setting, one pass."""
    if line["peer"] != "ours":
        return bench.line(line["peer"], line["build"], line["search"], asked, passes=1)
    return next(new for new in bench.ours(asked, line["setting"]) if new["setting"] == line["setting"])


def best(bench, earlier):
    lines = tuning(bench, earlier)
    peers = sorted({line["peer"] for line in lines}, key=lambda peer: (peer != "ours", peer))
    chosen = {(goal, peer): fastest(lines, peer, *goal) for goal in GOALS for peer in peers}
    unique = {key(line): line for line in chosen.values() if line}
    measured = {name: [] for name in unique}
    for turn in range(ROUNDS):
        print(f"round {turn + 1} of {ROUNDS}: {len(unique)} settings", file=sys.stderr)
        for name, line in unique.items():
            measured[name].append(again(bench, line, bench.sets["b"]))
    print(table(bench, peers, chosen, measured))


def table(bench, peers, chosen, measured):
    def cells(goal, peer):
        line = chosen[goal, peer]
        if line is None:
            return None
        ms = statistics.median(new["ms"] for new in measured[key(line)])
        return line, ms, measured[key(line)][0]

    count = len(bench.sets["b"].queries)
    rows = [
        f"{len(bench.rows)} rows of {bench.rows.shape[1] * 8} bits, {count} queries one by one, one thread, medians of {ROUNDS}",
        "settings chosen with set a; times, recall and CDR are those of set b\n",
        "| goal | who | ms | recall@10 | CDR@10 | ours is so many times as fast |",
        "|---|---|---|---|---|---|",
    ]
    for goal in chosen_goals(chosen):
        ours = cells(goal, "ours") if "ours" in peers else None
        for peer in peers:
            name, found = f"{goal[0]} {goal[1]:g}", cells(goal, peer)
            if found is None:
                rows.append(f"| {name} | {peer} | never reached | | | |")
                continue
            line, ms, new = found
            ratio = f"{ms / ours[1]:.2f}" if ours else "-"
            rows.append(f"| {name} | {label(line)} | {ms:.4f} | {new['recall']:.4f} | {new['cdr']:.4f} | {ratio} |")
    return "\n".join(rows)


def chosen_goals(chosen):
    return list(dict.fromkeys(goal for goal, _ in chosen))
