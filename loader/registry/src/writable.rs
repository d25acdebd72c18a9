//! Who may write to a file, as far as that says who it is from.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

use forebay_core::{Error, Result};

/// Of a mode: anyone may write.
const OTHERS: u32 = 0o002;
/// Of a folder's mode: only who made a file may put another in its place.
const STICKY: u32 = 0o1000;

/// Refuses a file that anyone may write to or replace, through its folder or through a folder further up. In
/// a folder such as /tmp anyone may make files, but only their makers replace them. A file there is accepted
/// if it was `named`, and refused if it was only found.
///
/// # Errors
/// `Invalid`, with what to do; `Io`.
pub(super) fn guard(path: &Path, named: bool) -> Result<()> {
    let mode = |path: &Path| fs::metadata(path).map(|found| found.mode());
    if mode(path)? & OTHERS != 0 {
        return Err(Error::invalid(format!("anyone may write to it: chmod o-w {}", path.display())));
    }
    let folder_of = |path: &Path, named: bool| {
        let folder = path.parent().unwrap_or(path);
        let found = mode(folder)?;
        if found & OTHERS != 0 && !(named && found & STICKY != 0) {
            let folder = folder.display();
            return Err(Error::invalid(format!(
                "anyone may put files into its folder: chmod o-w {folder}, or move it to a folder of your own"
            )));
        }
        Ok(())
    };
    folder_of(path, named)?;
    // Where a link leads, the link named it.
    let real = fs::canonicalize(path)?;
    folder_of(&real, true)?;
    for above in real.ancestors().skip(2) {
        let found = mode(above)?;
        if found & OTHERS != 0 && found & STICKY == 0 {
            let above = above.display();
            return Err(Error::invalid(format!(
                "anyone may put another folder in the place of the one it is in: chmod o-w {above}, or move it to a folder of your own"
            )));
        }
    }
    Ok(())
}
