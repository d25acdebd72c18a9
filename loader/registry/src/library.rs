//! Loading a plugin's library and checking its layout, in both directions.
//!
//! A library is never unloaded: its code may be on any stack, and glibc pins it in most cases anyway.
#![expect(unsafe_code, reason = "loading a library runs its code")]

use std::{error::Error as _, path::Path};

use forebay_core::{
    Error, ErrorKind, Result,
    abi::{
        PluginRef,
        abi_stable::{
            StableAbi,
            abi_stability::abi_checking::{CheckingGlobals, check_layout_compatibility_with_globals},
            library::{AbiHeaderRef, LibHeader, LibraryError},
        },
    },
};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

/// The most lines of the report that tell what one side has.
const SIDE: usize = 4;

/// Loads the library at `path` and gives the plugin that its `entry` leads to.
///
/// # Errors
/// `Abi`: it cannot be loaded, or its layout is not this host's; in a few lines.
pub(crate) fn load(path: &Path, entry: &str) -> Result<PluginRef> {
    // SAFETY: the symbol's address is that of a header; `upgrade` looks at its magic before anything else.
    let header = unsafe { symbol::<AbiHeaderRef>(path, entry) }?;
    let header = header.upgrade().map_err(|error| Error::new(ErrorKind::Abi, shorten(&error)))?;
    check(header)
}

/// Loads the library at `path` and gives the address of its symbol `entry`.
///
/// # Errors
/// `Abi`: it cannot be loaded, or has no such symbol.
///
/// # Safety
/// `T` is a pointer or a reference to what the symbol is.
pub(crate) unsafe fn symbol<T: Copy>(path: &Path, entry: &str) -> Result<T> {
    let abi = |message: String| Error::new(ErrorKind::Abi, message);
    // SAFETY: whoever put the file into a plugin folder wants its code to run; all symbols are bound
    // now and kept apart from other libraries'.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| {
        let reason = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        abi(format!("cannot be loaded: {reason}"))
    })?;
    // SAFETY: the caller's promise.
    let symbol = unsafe { library.get::<T>(entry.as_bytes()) }
        .map(|symbol| *symbol)
        .map_err(|_| abi(format!("has no symbol {entry}")))?;
    std::mem::forget(library);
    Ok(symbol)
}

/// Checks the layout behind a header, and gives the plugin.
///
/// # Errors
/// `Abi`, when the layouts differ.
pub(crate) fn check(header: &'static LibHeader) -> Result<PluginRef> {
    let refusal = match header.init_root_module::<PluginRef>() {
        Ok(plugin) => return Ok(plugin),
        Err(error) => Error::new(ErrorKind::Abi, shorten(&error)),
    };
    // A host whose tables grew refuses every older plugin: abi_stable wants the host's to be the
    // shorter ones. The other way round is as good, since a missing entry is never called. By itself: what abi_stable has checked it
    // compares with all that comes later, and of tables within tables the shorter ones of this plugin would count as this host's.
    let fits = |theirs| {
        let alone = CheckingGlobals::new();
        check_layout_compatibility_with_globals(theirs, PluginRef::LAYOUT, &alone).is_ok()
    };
    if !header.layout().is_some_and(fits) {
        return Err(refusal);
    }
    // SAFETY: the host's tables extend the plugin's at the end, which was just checked, and their
    // accessors look at the plugin's own mask of entries.
    unsafe { header.init_root_module_with_unchecked_layout::<PluginRef>() }.map_err(|_| refusal)
}

/// The first difference in abi_stable's report: where it is, what this host has and what the plugin has. The whole is
/// up to 1,800 lines long.
fn shorten(error: &LibraryError) -> String {
    let text = error.to_string();
    // The report goes from the outside to the inside, each part with the way to it: the last part has the cause.
    let inside = text.rfind("error(s)inside:").map_or(text.as_str(), |at| &text[at..]);
    let causes: Vec<_> = inside.split("Error:").skip(1).collect();
    // A field says more than the size that it changed.
    let field = causes.iter().find(|cause| cause.starts_with("unexpected field"));
    let cause = field.or(causes.first()).map_or(inside, |cause| *cause);
    let what = cause.lines().next().unwrap_or_default().trim();
    let place = place(inside).map_or(String::new(), |place| format!(" in {place}"));
    let sides = [("Expected:", "expected", "this host"), ("Found:", "found", "the plugin")];
    let sides = sides.iter().filter_map(|(head, layout, whose)| {
        let names = what.contains("variant").then(|| variants(inside, layout)).flatten();
        Some(format!("\n  {whose}: {}", names.or_else(|| side(cause, head))?))
    });
    format!("built against another layout of the ABI: {what}{place}{}", sides.collect::<String>())
}

/// The end of the way to the cause: a field of a type, and what is in it.
fn place(inside: &str) -> Option<String> {
    let way = inside.split("Layout of expected type:").next()?;
    let part = |label| way.lines().filter_map(move |line| line.trim().strip_prefix(label));
    let types: Vec<_> = part("type:").collect();
    let names: Vec<_> = part("field_name:").collect();
    let (last, steps) = (types.last()?, types.iter().zip(names.iter().skip(1)));
    let named: Vec<_> = steps.filter(|(_, name)| name.parse::<u32>().is_err()).collect();
    // Which argument it is of says something only of what is an argument itself.
    let passed = |at: usize| *named[at].0 == "AFunctionPointer" && at + 1 < named.len();
    let told = named.iter().enumerate().filter(|(at, _)| !passed(*at));
    let steps: Vec<_> = told.map(|(_, (inside, name))| format!("{inside}.{name}")).collect();
    Some(format!("{} ({last})", steps[steps.len().saturating_sub(2)..].join(", ")))
}

/// The variants of the enum that is the cause, which say more than their count.
fn variants(inside: &str, layout: &str) -> Option<String> {
    let layout = &inside[inside.find(&format!("Layout of {layout} type:"))?..];
    let names = layout.lines().find_map(|line| line.trim().strip_prefix("variants:"))?;
    Some(format!("variants {}", names.trim_matches('"').trim_end_matches(';').replace(';', ", ")))
}

/// What the report says below `head`, in one line.
fn side(cause: &str, head: &str) -> Option<String> {
    let lines = cause[cause.find(head)? + head.len()..].lines().skip(1).map(str::trim);
    let lines = lines.take_while(|line| !line.is_empty() && *line != "Found:");
    let lines = lines.filter(|line| !line.starts_with("package:")).take(SIDE);
    let text = lines.collect::<Vec<_>>().join(", ");
    Some(
        text.replace("field_name:", "field ")
            .replace("type:", "type ")
            .replace("size:", "size ")
            .replace("align:", "align "),
    )
}
