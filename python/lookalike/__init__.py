"""Near-duplicate search: texts become signatures, and those whose signatures are a few bits apart are found.

>>> import lookalike
>>> texts = ["The harbour reopened on Monday after a storm had closed it for two days.",
...          "The harbour reopened on Monday after the storm had closed it for two days.",
...          "Potatoes are planted in spring, as soon as the ground can be worked."]
>>> signatures = lookalike.sign(texts)
>>> a, b, distance = lookalike.join(signatures, radius=80)
>>> list(zip(a.tolist(), b.tolist()))
[(0, 1)]
"""

from ._collection import Added, Cluster, Collection, Hit, Record, Seen
from ._compare import Comparison, compare
from ._dedup import AlikePairs, Deduplicated, DuplicateCluster, Removed, dedup
from ._engine import __version__
from ._errors import FileError, LookalikeError
from ._index import Index
from ._recipe import Recipe
from ._signatures import Signatures, join, sign

__all__ = [
    "Added",
    "AlikePairs",
    "Cluster",
    "Collection",
    "Comparison",
    "Deduplicated",
    "DuplicateCluster",
    "FileError",
    "Hit",
    "Index",
    "LookalikeError",
    "Recipe",
    "Record",
    "Removed",
    "Seen",
    "Signatures",
    "__version__",
    "compare",
    "dedup",
    "join",
    "sign",
]
