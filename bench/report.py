"""Rows into a table, a chart and a document."""

import html
import json
import math
import os
import platform
import statistics
import subprocess
import time

NOT_MEASURED, MET, MISSED, TOLD = "not measured", "met", "missed", "no goal"


def row(part, what, against, goal, samples=None, reason="", unit="×", ours="", theirs="", detail=""):
    """goal is ('at least' or 'at most', number), or None. samples: one ratio for each round, or a single count."""
    made = {"part": part, "what": what, "against": against, "goal": goal, "unit": unit, "ours": ours, "theirs": theirs, "detail": detail}
    if not samples:
        return {**made, "verdict": NOT_MEASURED, "reason": reason}
    middle = statistics.median(samples)
    low, high = (middle, middle) if len(samples) < 4 else statistics.quantiles(samples, n=4)[::2]
    verdict = TOLD
    if goal is not None:
        verdict = MET if (middle >= goal[1] if goal[0] == "at least" else middle <= goal[1]) else MISSED
    return {**made, "median": middle, "low": low, "high": high, "rounds": len(samples), "verdict": verdict}


def number(value, unit):
    digits = f"{value:,.0f}" if value >= 100 else f"{value:.4g}"
    return digits + unit if unit in ("×", "") else f"{digits} {unit}"


def measured(r):
    if "median" not in r:
        return "–"
    text = number(r["median"], r["unit"])
    return text if r["rounds"] < 4 else f"{text} ({number(r['low'], '')}–{number(r['high'], '')})"


def goal(r):
    return "–" if r["goal"] is None else ("≥ " if r["goal"][0] == "at least" else "≤ ") + number(r["goal"][1], r["unit"])


def against(r):
    return "" if r["against"] == "–" else f" against {r['against']}"


def table(rows):
    cells = [("what", "against", "goal", "measured (middle half)", "verdict")]
    cells += [(r["what"], r["against"], goal(r), measured(r), r["verdict"].upper() if r["verdict"] == MISSED else r["verdict"])
              for r in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(5)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in cells]
    lines.insert(1, "  ".join("─" * width for width in widths))
    lines += [f"not measured: {r['what']}{against(r)}: {r['reason']}" for r in rows if r["verdict"] == NOT_MEASURED]
    return "\n".join(lines)


def first_line(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
        return (done.stdout or done.stderr).splitlines()[0].strip()
    except (OSError, IndexError, subprocess.TimeoutExpired):
        return "unknown"


def version_of(package):
    return first_line("dpkg-query", "-W", "-f=${Version}", package)


def machine(scratch, first):
    """`first`: whether what is measured goes before everything else on the machine."""
    model = "unknown processor"
    with open("/proc/cpuinfo") as info:
        model = next((line.split(":", 1)[1].strip() for line in info if line.startswith("model name")), model)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return {
        "processor": f"{model}, {os.cpu_count()} cores",
        "memory": f"{memory:.1f} GiB",
        "kernel": platform.release(),
        "disk": first_line("stat", "-f", "-c", "%T", str(scratch)),
        "priority": "real-time for both sides" if first else "both sides share the machine with whatever else it does",
        "load": f"{os.getloadavg()[0]:.1f} before the run",
        "peers": ", ".join(f"{name} {version_of(name)}" for name in ("sudo", "opendoas", "openssh-server", "libtomlplusplus3", "libsodium23")),
        "commit": first_line("git", "describe", "--always", "--dirty"),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "user": "root" if os.geteuid() == 0 else "an ordinary user",
    }


# ---- the chart: how far each row is from its goal

def better(r):
    """How many times better than asked; below 1 the goal is missed."""
    median = max(r["median"], 1e-9)
    return median / r["goal"][1] if r["goal"][0] == "at least" else r["goal"][1] / median


def label(r):
    return r["what"].replace("`", "") + ("" if r["against"] == "–" else " / " + r["against"].replace("`", ""))


def chart(rows):
    shown = [r for r in rows if "median" in r and r["goal"] is not None]
    left, width, line = 500, 360, 24
    most = max([1.0, *(abs(math.log2(better(r))) for r in shown)])
    middle = left + width / 2
    height = line * len(shown) + 60
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 170}" height="{height}" font-family="sans-serif" '
             f'font-size="12" role="img" aria-label="Each measurement against its goal">',
             '<rect width="100%" height="100%" fill="#ffffff"/>',
             f'<text x="{middle}" y="18" text-anchor="middle" fill="#222">missed ◀ goal ▶ better than asked (log scale)</text>',
             f'<line x1="{middle}" y1="26" x2="{middle}" y2="{height - 10}" stroke="#222"/>']
    for i, r in enumerate(shown):
        y = 34 + i * line
        length = math.log2(better(r)) / most * width / 2
        colour = "#2a7f4f" if r["verdict"] == MET else "#c0392b"
        parts += [f'<text x="{left - 8}" y="{y + 12}" text-anchor="end" fill="#222">{html.escape(label(r))}</text>',
                  f'<rect x="{min(middle, middle + length):.1f}" y="{y}" width="{max(abs(length), 1):.1f}" height="{line - 8}" fill="{colour}"/>',
                  f'<text x="{left + width + 6}" y="{y + 12}" fill="#222">{html.escape(number(r["median"], r["unit"]))} (goal {html.escape(goal(r))})</text>']
    return "\n".join(parts) + "\n</svg>\n"


# ---- docs/performance.md

def document(results, findings):
    rows, machine_facts = results["rows"], results["machine"]
    counts = {verdict: sum(r["verdict"] == verdict for r in rows) for verdict in (MET, MISSED, NOT_MEASURED)}
    lines = ["# Performance", "",
             "<!-- Generated by bench/bench.py from docs/performance.json and bench/findings.md. Do not edit. -->", "",
             f"Measured with `{results['command'].strip()}` at commit {machine_facts['commit']} on {machine_facts['date']}: "
             f"{counts[MET]} goals met, {counts[MISSED]} missed, {counts[NOT_MEASURED]} not measured.", "",
             "![each measurement against its goal](performance.svg)", "",
             "| what | against | ours | theirs | ratio (middle half) | goal | |", "|---|---|---|---|---|---|---|"]
    for r in rows:
        verdict = f"**{r['verdict']}**" if r["verdict"] in (MISSED, NOT_MEASURED) else r["verdict"]
        lines.append(f"| {r['what']} | {r['against']} | {r['ours'] or '–'} | {r['theirs'] or '–'} | {measured(r)} | {goal(r)} | {verdict} |")
    notes = [f"* {r['what'].capitalize()}: {r['detail']}." for r in rows if r.get("detail")]
    notes += [f"* Not measured: {r['what']}{against(r)}: {r['reason']}." for r in rows if r["verdict"] == NOT_MEASURED]
    lines += ["", *notes] if notes else []
    lines += ["", "Machine:", ""] + [f"* {name}: {value}" for name, value in machine_facts.items() if name not in ("commit", "date")]
    return "\n".join(lines) + "\n\n" + findings


def render(root, check=False):
    """docs/performance.md and .svg from docs/performance.json; with `check` only says whether they are what they would be."""
    results = json.loads((root / "docs/performance.json").read_text())
    wanted = {"performance.md": document(results, (root / "bench/findings.md").read_text()), "performance.svg": chart(results["rows"])}
    stale = [name for name, text in wanted.items() if not (root / "docs" / name).exists() or (root / "docs" / name).read_text() != text]
    for name in stale:
        print(f"docs/{name} is not what docs/performance.json says" if check else f"wrote docs/{name}")
        if not check:
            (root / "docs" / name).write_text(wanted[name])
    return 1 if check and stale else 0
