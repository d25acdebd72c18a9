//! `pickle`: refused, with the reason.
//!
//! ```toml
//! [pickle]
//! gives = "nothing: an error says why, and what to save instead"
//! when = "never; reading a pickle would run the program in it"
//! ```

use forebay_core::{Buffer, Context, Decoder, DecoderInfo, Error, NoOptions, Result, Value, Wanted};

/// Claims pickles and files of `torch.save`, in order to say why they are not read.
#[derive(Debug)]
pub struct Pickle;

impl Decoder for Pickle {
    const INFO: DecoderInfo = DecoderInfo {
        name: "pickle",
        summary: "Pickles and .pt files: refused, since a pickle is a program",
        priority: 64,
        extensions: &["pkl", "pickle", "pyd", "pt", "pth", "ckpt", "joblib"],
        ..DecoderInfo::DEFAULT
    };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }

    fn decode(&self, _: &Buffer, wanted: &Wanted, _: &Context) -> Result<Value> {
        Err(refuse(wanted.extension))
    }
}

fn refuse(extension: &str) -> Error {
    let torch = matches!(extension, "pt" | "pth" | "ckpt");
    let instead = if torch {
        "load it where it came from, and save the tensors with `safetensors.torch.save_file`"
    } else {
        "load it where it came from, and save arrays with `numpy.save` (`allow_pickle=False`) or as safetensors, other values as JSON or \
         msgpack"
    };
    Error::unsupported(format!(
        "`{extension}` is a pickle, and to read a pickle runs whatever code is in it, so no pickle is read here; {instead}"
    ))
}

#[cfg(test)]
mod tests {
    use forebay_core::ErrorKind;

    use super::*;

    #[test]
    fn says_why_and_what_to_do_b146() {
        for (extension, instead) in [("pt", "safetensors.torch.save_file"), ("pkl", "numpy.save")] {
            let error = refuse(extension);
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(
                error.message().contains("runs whatever code") && error.message().contains(instead),
                "{error}"
            );
        }
    }
}
