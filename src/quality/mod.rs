//! How good is an answer? Pairs and clusters against labels, an index against the scan, and the curve of a radius.
//!
//! Everything here is about rows; the doors know their ids. The pairs of a cluster are counted, never listed: a cluster of
//! a million rows is 500 thousand million pairs.
//!
//! ```
//! use lookalike::quality::{Clusters, Links, Pairs, Score, ari};
//!
//! let labels = Links::Clusters(Clusters::new([Some(0), Some(0), Some(0), Some(1), Some(1), None]));
//! let found = Links::Pairs(Pairs::new([(0, 1), (1, 2), (4, 5)]));
//! let score = Score::of(&found, &labels, &Pairs::default());
//! assert_eq!((score.precision(), score.recall()), (2.0 / 3.0, 0.5));
//! assert_eq!(ari(&labels, &labels, 6), 1.0);
//! ```

mod alike;
mod answers;
mod curve;
mod links;
mod score;
mod split;

pub use alike::{Alike, Measure, WeightedRow, alike};
pub use answers::{cdr, distance_ratio, nearest_found, neighbors_found};
pub use curve::{Curve, Goal, histogram};
pub use links::{Clusters, Links, Pairs};
pub use score::{Score, ari, cluster_recall, wilson};
pub use split::half;
