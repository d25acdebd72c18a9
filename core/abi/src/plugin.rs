//! The root of a plugin: what its entry symbol leads to.

use abi_stable::{
    StableAbi,
    library::{CheckTypeLayout, LibHeader, RootModule, RootModuleError},
    package_version_strings,
    sabi_types::VersionStrings,
    std_types::{ROption, RResult, RStr},
};

use crate::{Decoder, MapsRef, Outcome, Pipe, Store};

/// A plugin of another major number is refused.
pub const ABI_MAJOR: u32 = 1;
/// Counts what was added since the major number moved; either side may be newer.
pub const ABI_MINOR: u32 = 2;

/// What a plugin can make. Each function takes the name of one of the things in its manifest and
/// that thing's options as a JSON object.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = PluginRef)))]
#[sabi(missing_field(panic))]
pub struct Plugin {
    /// Makes a DataPipe.
    pub pipe: unsafe extern "C" fn(RStr<'_>, RStr<'_>, &mut ROption<Pipe>) -> Outcome,
    /// Makes a Decoder.
    pub decoder: unsafe extern "C" fn(RStr<'_>, RStr<'_>, &mut ROption<Decoder>) -> Outcome,
    /// Makes a Store.
    #[sabi(last_prefix_field)]
    pub store: unsafe extern "C" fn(RStr<'_>, RStr<'_>, &mut ROption<Store>) -> Outcome,
    /// Since 1.2: takes what the host offers to plugins that map files. Called once, before anything is made.
    #[sabi(missing_field(option))]
    pub maps: extern "C" fn(MapsRef),
}

impl RootModule for PluginRef {
    const BASE_NAME: &'static str = "forebay";
    const NAME: &'static str = "forebay plugin";
    const VERSION_STRINGS: VersionStrings = package_version_strings!();
    abi_stable::declare_root_module_statics! {PluginRef}
}

/// The header that a plugin's entry symbol names; `root` gives the plugin's table.
///
/// # Safety
/// `root` gives a [`PluginRef`], turned into an erased prefix, and does not unwind.
#[must_use]
pub const unsafe fn header(root: extern "C" fn() -> RootResult) -> LibHeader {
    // SAFETY: the caller's promise is the constructor's.
    unsafe { LibHeader::from_constructor::<PluginRef>(root, CheckTypeLayout::Yes) }
}

/// What the constructor of a [`header`] gives.
pub type RootResult =
    RResult<abi_stable::prefix_type::PrefixRef<abi_stable::marker_type::ErasedPrefix>, RootModuleError>;
