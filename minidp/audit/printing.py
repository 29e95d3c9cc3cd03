"""Output of an audit while it measures."""

from . import checks


class Screen:
    """Prints rows of the audit under their sections, as soon as they are measured.

    everything: print each row; otherwise only failures, and the number of agreeing rows per
    section.
    """

    def __init__(self, everything: bool):
        self.everything, self.section = everything, None
        self.rows: list[dict] = []

    def show(self, row):
        """Print one row, or count it."""
        if row["section"] != self.section:
            self.end()
            self.section = row["section"]
            print(f"\n{self.section}")
        self.rows.append(row)
        if self.everything or not row["passed"]:
            print("\n".join(text(row)), flush=True)

    def end(self):
        """Print how many rows of the last section agree."""
        if self.rows and not self.everything:
            passed = sum(row["passed"] for row in self.rows)
            print(f"  {passed} of {len(self.rows)} labels agree with their code", flush=True)
        self.rows = []


def text(row):
    """The lines of a row that are printed."""
    passed = "ok  " if row["passed"] else "FAIL"
    yield f"  {passed} {row['card']} [{row['label']}]  {row['equation']}"
    if row["in_words"]:
        yield f"         in words: {row['in_words']}"
    yield from (f"         {line['path']}:{line['line']}   {line['text']}" for line in row["code"])
    yield f"         source: {row['source']}"
    # the measurement nearest to its limit, of all and of those of the printed equation
    failed = [each["text"] for each in row["measured"] if not each["passed"]]
    printed = [each for each in row["measured"] if each["method"] == checks.PRINTED]
    nearest = {each["text"]: None for each in (*row["measured"][:1], *printed[:1])}
    yield from (f"         failed: {text}" for text in failed)
    if not failed:
        yield from (f"         nearest to its limit: {text}" for text in nearest)
    yield from (f"         {fault}" for fault in (*row["faults"], row["suspect"]) if fault)
