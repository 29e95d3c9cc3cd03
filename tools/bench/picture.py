"""Time and peak memory of a step against the size of its lot."""


def lot_sizes(contests, file):
    """Draw both for every workload, device and contender that was measured at more than one lot, as PNG."""
    from matplotlib.figure import Figure

    series = {}
    for contest in contests:
        for row in contest["rows"]:
            name = f"{contest['workload']} {row['contender']}" + (" on GPU" if contest["device"] == "gpu" else "")
            series.setdefault(name, []).append((contest["lot"], row["step_ms"], row["peak_mib"]))
    figure = Figure(figsize=(10, 4), layout="constrained")
    time, memory = figure.subplots(1, 2)
    for name, points in series.items():
        if len(points) > 1:
            lots, ms, mib = zip(*sorted(points))
            time.loglog(lots, ms, marker="o", label=name)
            memory.loglog(lots, mib, marker="o", label=name)
    time.set(xlabel="examples in a lot", ylabel="time of a step, ms")
    memory.set(xlabel="examples in a lot", ylabel="peak memory that the steps add, MiB")
    if series:
        time.legend(fontsize="small")
    figure.savefig(file, format="png", dpi=120)
