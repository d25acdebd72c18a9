//! The in-tree plugins, linked in: the one place where the loader names a plugin.

use forebay_core::{Registrar, Result};

/// Adds every in-tree plugin by the `register` that `export_plugin!` wrote.
///
/// # Errors
/// `Abi`, when one does not fit, which would be a broken build.
pub(crate) fn register(registrar: &mut dyn Registrar) -> Result<()> {
    forebay_arrow::register(registrar)?;
    forebay_audio::register(registrar)?;
    forebay_compress::register(registrar)?;
    forebay_files::register(registrar)?;
    forebay_hdf5::register(registrar)?;
    forebay_image::register(registrar)?;
    forebay_json::register(registrar)?;
    forebay_msgpack::register(registrar)?;
    forebay_pipes::register(registrar)?;
    forebay_remote::register(registrar)?;
    forebay_tar::register(registrar)?;
    forebay_tensors::register(registrar)?;
    forebay_tfrecord::register(registrar)
}
