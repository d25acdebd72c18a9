//! The options that the `open` of a C plugin is given: checked against the manifest, with their defaults.
#![expect(unsafe_code, reason = "functions that C calls")]

use std::{
    collections::BTreeMap,
    ffi::{CString, c_char},
    ptr,
};

use forebay_core::{Error, Result, abi::c::ForebayOptions};
use forebay_graph::OptionSpec;
use serde_json::{Map, Value};

use super::host::text;

/// The options of one thing. The face that C sees comes first, so that a pointer to it is one to all.
#[repr(C)]
pub(super) struct COptions {
    face: ForebayOptions,
    values: Map<String, Value>,
    texts: BTreeMap<String, CString>,
    /// What `face.json` points at.
    _json: CString,
}

impl COptions {
    /// The options in a JSON object, and the defaults of those that are not in there.
    pub(super) fn new(json: &str, specs: &[OptionSpec]) -> Result<Self> {
        let mut values: Map<String, Value> = serde_json::from_str(json)
            .map_err(|error| Error::invalid(format!("options are a JSON object: {error}")))?;
        for spec in specs {
            if spec.required && !values.contains_key(&spec.name) {
                return Err(Error::invalid(format!("option `{}` is missing", spec.name)));
            }
            values.entry(&spec.name).or_insert_with(|| spec.default.clone());
        }
        let text = |text: &str, name: &str| {
            CString::new(text).map_err(|_| Error::invalid(format!("option `{name}` has a zero byte in it")))
        };
        let mut texts = BTreeMap::new();
        for (name, value) in &values {
            if let Value::String(value) = value {
                texts.insert(name.clone(), text(value, name)?);
            }
        }
        // JSON escapes control characters, so there is no zero in it.
        let json = text(&Value::Object(values.clone()).to_string(), "JSON")?;
        let face = ForebayOptions {
            size: size_of::<ForebayOptions>(),
            json: json.as_ptr(),
            text: get_text,
            integer,
            number,
        };
        Ok(Self { face, values, texts, _json: json })
    }

    /// What C is given.
    pub(super) fn face(&self) -> *const ForebayOptions {
        (&raw const *self).cast()
    }
}

/// What `find` finds in the options behind a face, by a name.
fn with<T>(
    options: *const ForebayOptions,
    name: *const c_char,
    find: impl FnOnce(&COptions, &str) -> Option<T>,
) -> Option<T> {
    // SAFETY: null, or what `face` gave, which lives as long as the call of `open`.
    let given = unsafe { options.cast::<COptions>().as_ref() }?;
    // SAFETY: the header asks for text that ends with a zero.
    find(given, unsafe { text(name, "name of an option") }.ok()?)
}

unsafe extern "C" fn get_text(options: *const ForebayOptions, name: *const c_char) -> *const c_char {
    let found = with(options, name, |given, name| Some(given.texts.get(name)?.as_ptr()));
    found.unwrap_or(ptr::null())
}

unsafe extern "C" fn integer(options: *const ForebayOptions, name: *const c_char, otherwise: i64) -> i64 {
    let found = with(options, name, |given, name| match given.values.get(name)? {
        Value::Bool(truth) => Some((*truth).into()),
        other => other.as_i64().or(other.as_u64().map(u64::cast_signed)),
    });
    found.unwrap_or(otherwise)
}

unsafe extern "C" fn number(options: *const ForebayOptions, name: *const c_char, otherwise: f64) -> f64 {
    with(options, name, |given, name| given.values.get(name)?.as_f64()).unwrap_or(otherwise)
}
