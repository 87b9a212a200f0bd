"""Prints the tables and the bounds of allreduce.py and network.py."""

from options import text_of


def figure(value):
    return "-" if value is None else f"{value:.4g}" if value < 1000 else f"{value:,.0f}"


def print_grid(title, header, rows):
    rows = [header, *rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(header))]
    print(f"\n{title}")
    for row in rows:
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths)))


def print_times(title, table, ranks, columns):
    """A row for each size; in brackets the range of the rounds."""
    def time(column, size):
        cell = table.cell(ranks, column, size)
        return f"{figure(cell.median() * 1e6)} ({cell.spread():.0%})" if cell else "-"
    print_grid(title, ["size", *columns], [[text_of(size), *(time(column, size) for column in columns)]
                                           for size in table.sizes(ranks)])


def print_environment(environment, peers):
    print("# {host}: {cpu_model}, {cores} cores, load {load}".format_map(environment))
    for peer in peers:
        if peer.library:
            hung = f"; {peer.hung} runs did not end after their last result" if peer.hung else ""
            print(f"# {peer.name}: {peer.library}{hung}")


def judge(title, table, bounds):
    """Prints which bounds hold; returns whether all do."""
    print(f"\n{title}")
    holds = True
    for bound in bounds:
        values, missed = bound.judge(table)
        scale = 1 if bound.below else 1e6
        shown = ", ".join(f"{text_of(size)}: {figure(value if value is None else value * scale)}"
                          for size, value in (missed or values).items())
        print(f"  {'MISSED' if missed else 'holds ' if values else 'no size'}  {bound.text()}   {shown}")
        holds = holds and bool(values) and not missed
    return holds


def results_of(table):
    """For JSON."""
    return [{"ranks": ranks, "column": column, "size": size, "median": cell.median(), "spread": cell.spread(),
             "wrong": cell.wrong, "rounds": cell.rounds} for (ranks, column, size), cell in table.cells.items()]


def judged(table, bounds):
    """For JSON."""
    return [{"bound": bound.text(), "values": values, "missed": list(missed)}
            for bound in bounds for values, missed in [bound.judge(table)]]
