"""What a cell shows: text for a terminal, HTML for a notebook."""

from html import escape

from unfuse import _program

# Parts of the wall time that are shown, and lines of code below an operator.
PARTS = 5
LINES = 2
# The part of the query's CPU time that a line has at least.
LEAST = 0.02
# Work of no operator is left out below this part of the CPU time and of the waits.
SMALL = 0.005

STYLE = """<style>
.unfuse { font: 13px/1.45 system-ui, sans-serif; }
.unfuse table { border-collapse: collapse; margin: .4em 0; }
.unfuse td, .unfuse th { padding: 1px 8px; text-align: right; vertical-align: top; font-size: 13px; white-space: nowrap; }
.unfuse th { font-weight: 500; opacity: .7; }
.unfuse td:last-child, .unfuse th:last-child { text-align: left; max-width: 46em; overflow: hidden; text-overflow: ellipsis; }
.unfuse .bar { text-align: left; width: 90px; }
.unfuse .bar div { height: 9px; background: #d9662b; }
.unfuse .quiet { opacity: .7; }
.unfuse code { font-size: 12px; }
</style>"""


class CellAnswer:
    """Where the time of one query went."""

    def __init__(self, plan, why, text, others):
        """Args:
        plan: an element of `unfuse plan --json`.
        why: `unfuse why --json`, or None.
        text: the same for a terminal.
        others: how many more queries the cell ran.
        """
        self._plan = plan
        self._why = why
        self._text = text
        self._others = others

    @classmethod
    def read(cls, directory, plan, queries):
        """Asks the program for the rest of the answer.

        Raises:
            ProgramError: if it does not give it.
        """
        query = str(plan["query"])
        try:
            why = _program.answer("why", directory, "--query", query)
            texts = [_program.run("why", directory, "--query", query)]
        except _program.ProgramError as error:
            # A query that failed has no wall time to explain.
            why, texts = None, [f"unfuse: {error}\n"]
        texts.append(_program.run("plan", directory, "--query", query))
        return cls(plan, why, "\n".join(texts), queries - 1)

    def __repr__(self):
        return self._text

    def _repr_html_(self):
        plan = self._plan
        wall = f"{plan['wall_s']:.2f} s, " if plan["wall_s"] is not None else ""
        head = f"<b>query {plan['query']}: {escape(plan['name'])}</b>"
        others = f", the costliest of {self._others + 1} queries" if self._others > 0 else ""
        figures = f"{wall}{plan['cpu_s']:.2f} s of CPU time{others}"
        failed = f"<p>failed: {escape(plan['error'][:300])}</p>" if plan["error"] else ""
        return (
            f'{STYLE}<div class="unfuse">{head}<br><span class="quiet">{figures}</span>{failed}'
            f"{self._parts()}{self._operators()}</div>"
        )

    def _parts(self):
        """Where the wall time went."""
        parts = (self._why or {}).get("parts", [])[:PARTS]
        if not parts:
            return ""
        wall = max(self._why["now"]["wall_s"], 1e-9)
        rows = "".join(
            f"<tr><td>{part['seconds']:.2f} s</td><td>{100 * part['seconds'] / wall:.0f}%</td>"
            f"<td>{escape(part['what'])}</td></tr>"
            for part in parts
        )
        return f"<table><tr><th>wall time</th><th>share</th><th>what</th></tr>{rows}</table>"

    def _operators(self):
        """The plan, without nodes that only pass rows on."""
        depths, rows = {}, []
        for node in self._plan["nodes"]:
            depth = depths.get(node["parent_id"], 0)
            depths[node["node_id"]] = depth if node["passes"] else depth + 1
            if not node["passes"]:
                rows.append(_operator(node, depth))
        headings = (
            _row(one, None, None, f'<span class="quiet">[{escape(one["name"])}]</span>')
            for one in self._plan["headings"]
            if one["share"] >= SMALL or one["wait_s"] >= SMALL * (self._plan["wait_s"] or 0) > 0
        )
        return (
            "<table><tr><th>CPU</th><th>share</th><th></th><th>waiting</th><th>rows</th><th>ns/row</th>"
            f"<th>operator</th></tr>{''.join(rows)}{''.join(headings)}</table>"
        )


def _operator(node, depth):
    fused = f'<span class="quiet">*({node["codegen_stage"]})</span> ' if node["codegen_stage"] is not None else ""
    indent = f'<span style="padding-left:{1.2 * min(depth, 20):.1f}em"></span>'
    detail = node["detail"] or node["operator"]
    cell = f'{indent}{fused}<span title="{escape(detail[:2000])}">{escape(detail[:160])}</span>'
    for line in node["lines"][:LINES]:
        if line["share"] >= LEAST:
            callee = f" → {escape(line['callee'])}" if line["callee"] else ""
            cell += (
                f'<br>{indent}<span class="quiet">&nbsp;&nbsp;{100 * line["share"]:.0f}% {escape(line["place"])}: '
                f"<code>{escape(line['text'])}{callee}</code></span>"
            )
    return _row(node, node["rows"], node["ns_per_row"], cell)


def _row(share, rows, per_row, cell):
    title = f"{100 * share['share_low']:.1f} to {100 * share['share_high']:.1f}% with 95% certainty"
    bar = f'<div style="width:{100 * share["share"]:.0f}%"></div>'
    waiting = f"{share['wait_s']:.2f} s" if share["wait_s"] >= 0.005 else ""
    per_row = f"{per_row:,.0f}" if per_row is not None and share["samples"] else ""
    return (
        f'<tr><td>{share["cpu_s"]:.2f} s</td><td title="{title}">{100 * share["share"]:.1f}%</td>'
        f'<td class="bar">{bar}</td><td>{waiting}</td><td>{"" if rows is None else f"{rows:,}"}</td>'
        f"<td>{per_row}</td><td>{cell}</td></tr>"
    )
