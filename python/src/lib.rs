//! The native part of the Python package. It translates: what is answered, the engine answers. What users call, with its
//! documentation, is in `python/lookalike/`.

mod apart;
mod arrow;
mod collection;
mod compare;
mod dedup;
mod error;
mod index;
mod join;
mod recipe;
mod rows;
mod sign;
mod signatures;
mod sketch;
mod texts;
mod threads;

/// The module `lookalike._engine`.
#[pyo3::pymodule(name = "_engine")]
mod engine {
    #[pymodule_export]
    use super::{
        apart::Buckets, apart::KeyPlan, apart::distances, collection::Collection, compare::compare,
        dedup::Sketches, index::Index, join::join, recipe::Recipe, sign::sign,
        signatures::Signatures, sketch::Sketcher, sketch::alike, sketch::dial, sketch::keepers,
    };
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
