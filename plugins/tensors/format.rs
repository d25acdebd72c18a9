//! Stored arrays, for the tests of all formats.

mod npy;
mod safetensors;

use forebay_bundled::forebay_tensors;
use forebay_testkit::Costs;

use crate::{Corpus, Format, Kit, apart, buffer, decode, expand, number, opened, parser};

pub(crate) const FORMAT: Format = Format {
    parsers: &[
        parser("idx", idx, &["idx"]),
        parser("npy", npy, &["npy"]),
        parser("npz", npz, &["npz"]),
        parser("safetensors", safetensors, &["safetensors"]),
    ],
    readers: &[
        opened(
            "fixed_length_records",
            &["fixed_length_records dtype=\"[('label', 'u1'), ('image', 'u1', (3, 2, 2))]\""],
            &["cifar.bin"],
        ),
        opened("split_idx", &["split_idx"], &["two.idx"]),
        opened("split_safetensors", &["split_safetensors"], &["two.safetensors"]).costs(costs),
        decoded!("idx", ["two.idx"]),
        decoded!("npy", ["c.npy", "fortran.npy", "struct.npy"]),
        decoded!("npz", ["two.npz", "stored.npz"]),
        decoded!("pickle", ["list.pkl"]).refuses(),
        decoded!("safetensors", ["two.safetensors"]),
    ],
    corpora: &[
        Corpus::new("npy", npy::digest, 1.0).compare(npy::compare),
        Corpus::new("npz", npy::digest, 1.0).compare(npy::compare),
        Corpus::new("safetensors", safetensors::digest, 1.0),
    ],
    kit: Some(Kit {
        graphs: &["files SEEDS/cifar.bin | fixed_length_records record_bytes=13"],
        skip: &["pickle"],
        ..Kit::of(&["c.npy", "two.npz", "two.safetensors", "two.idx"])
    }),
};

/// A header with its length before it, which all want, and the bytes of two tensors.
fn costs(bytes: &[u8]) -> Costs {
    let data = 8 + number(&bytes[..8]);
    let header: serde_json::Value = serde_json::from_slice(&bytes[8..data]).unwrap();
    let place = |tensor: &serde_json::Value| {
        let place = tensor["data_offsets"].as_array()?.iter().filter_map(serde_json::Value::as_u64);
        place.map(|place| data + place as usize).collect::<Vec<_>>().try_into().ok()
    };
    let mut places: Vec<[usize; 2]> = header.as_object().unwrap().values().filter_map(place).collect();
    places.sort_unstable();
    let parts = places.into_iter().enumerate();
    apart(&parts.map(|(sample, [start, end])| (start..end, sample..sample + 1)).collect::<Vec<_>>())
}

fn idx(bytes: &[u8]) {
    let _ = forebay_tensors::parse_idx(&buffer(bytes));
}

fn npy(bytes: &[u8]) {
    let _ = forebay_tensors::parse_npy(&buffer(bytes));
}

fn npz(bytes: &[u8]) {
    let _ = forebay_tensors::parse_npz(&buffer(bytes));
    decode::<forebay_tensors::Npz>(bytes);
}

fn safetensors(bytes: &[u8]) {
    let _ = forebay_tensors::parse_safetensors(&buffer(bytes));
    expand::<forebay_tensors::SplitSafetensors>("{}", bytes);
}
