"""How alike are the pages of a manual? Cells as editors and Jupyter know them.

    python histogram.py [FIGURE.png]
"""

# %% Documents: two versions of a manual, page by page
import json
import sys
from pathlib import Path

import lookalike

figure = Path(sys.argv[1] if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else "histogram.png")
source = Path(__file__).resolve().parents[2] / "examples/docs.jsonl"
documents = [json.loads(line) for line in source.open()]

# %% Signatures: bits that estimate the Jaccard coefficient of word 3-grams
signatures = lookalike.sign([document["text"] for document in documents], "minhash-256")
print(signatures)

# %% All pairs at most 128 of 256 bits apart: strangers are about that far from each other
a, b, distance = lookalike.join(signatures, radius=128)
similarity = [signatures.similarity(int(bits)) for bits in distance]
print(f"{len(a)} pairs, {sum(value >= 0.7 for value in similarity)} of them at least 0.7 alike")

# %% The nearest that are not the same
for row in [row for row in distance.argsort(kind="stable") if distance[row] > 0][:5]:
    print(f"{similarity[row]:.2f}  {documents[a[row]]['id']}  {documents[b[row]]['id']}")

# %% The histogram: near-duplicates on the right, strangers on the left, and little in between
import matplotlib  # noqa: E402

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

pyplot.figure(figsize=(7, 4))
pyplot.hist(similarity, bins=40, range=(0, 1), log=True)
pyplot.axvline(0.7, color="grey", linestyle="--", label="where dedup draws the line")
pyplot.xlabel("estimated similarity")
pyplot.ylabel("pairs")
pyplot.legend()
pyplot.tight_layout()
pyplot.savefig(figure, dpi=120)
print(f"the figure is in {figure}")
