//! `export_plugin!`: makes a crate a plugin, loaded at run time or linked in.

use forebay_abi::{
    Decoder as RawDecoder, Outcome, Pipe as RawPipe, Store as RawStore,
    abi_stable::{
        library::LibHeader,
        std_types::{ROption, RStr},
    },
};

use crate::{
    DecoderInfo, Error, PipeInfo, Result, StoreInfo,
    descriptor::{Class, Described},
    shim,
};

/// Makes a thing from its options, as JSON text, and the plugin's name and version.
pub type Make<T> = fn(&str, &'static str) -> Result<T>;

/// A DataPipe that a plugin can make.
pub struct PipeEntry {
    /// Its class.
    pub class: Class,
    /// Its description.
    pub described: Described<PipeInfo>,
    /// Makes one from its options.
    pub make: Make<RawPipe>,
}

/// A Decoder that a plugin can make.
pub struct DecoderEntry {
    /// Its description.
    pub described: Described<DecoderInfo>,
    /// Its description.
    pub make: Make<RawDecoder>,
}

/// A Store that a plugin can make.
pub struct StoreEntry {
    /// Its description.
    pub described: Described<StoreInfo>,
    /// Makes one from its options.
    pub make: Make<RawStore>,
}

/// A plugin that is linked into the program, with the same manifest and entry as a file.
pub struct StaticPlugin {
    /// The manifest's bytes.
    pub manifest: Vec<u8>,
    /// The header that the entry symbol would name.
    pub header: &'static LibHeader,
}

/// Receives linked plugins; the loader's registry implements it.
pub trait Registrar {
    /// Adds a plugin.
    ///
    /// # Errors
    /// `Abi` if it does not fit.
    fn add(&mut self, plugin: StaticPlugin) -> Result<()>;
}

/// Finds the entry with this name and makes its thing; called by the functions that [`export_plugin!`](crate::export_plugin) writes.
pub fn make<E, T>(
    entries: &[E],
    name_of: fn(&E) -> &'static str,
    make_of: fn(&E) -> Make<T>,
    plugin: &'static str,
    (name, options): (RStr<'_>, RStr<'_>),
    place: &mut ROption<T>,
) -> Outcome {
    shim::guarded(|| {
        let entry = entries.iter().find(|entry| name_of(entry) == name.as_str()).ok_or_else(|| {
            Error::bug("the manifest names what the plugin does not have").context("name", name)
        })?;
        *place = ROption::RSome(make_of(entry)(options.as_str(), plugin)?);
        Ok(())
    })
}

/// CPU features that this crate, and with it the plugin, was compiled to need.
pub const CPU: &[&str] = {
    if cfg!(target_feature = "avx512f") {
        &["avx512f", "avx2", "fma"]
    } else if cfg!(target_feature = "avx2") {
        &["avx2"]
    } else {
        &[]
    }
};

/// The version of a plugin's states, if it declares one.
#[must_use]
pub const fn declared(version: &[u32]) -> Option<u32> {
    match version {
        [version, ..] => Some(*version),
        [] => None,
    }
}

/// Makes this crate a plugin that offers these types.
///
/// `state_version: 1` comes first, if you give it. It is a promise: any build that declares this number reads the
/// states that another such build saved, and makes the same samples from the same input. So a snapshot can be
/// resumed after the plugin was rebuilt or updated. Raise the number if the format of a state or the samples
/// change. Without it, a snapshot can be resumed only with the same file.
///
/// Then come lists, each optional, in this order: `sources`, `indexed`, `maps`, `flat_maps`, `streams`,
/// `decoders`, `stores`. `indexed` has sources with [random access](crate::Indexed); do not list them under
/// `sources` too. The crate needs `crate-type = ["cdylib", "rlib"]`. The macro writes the manifest into the
/// section `.forebay`, one exported symbol with the crate's name, and `register`, which gives the same plugin to a
/// program that links the crate. See the [crate's page](crate) for a whole plugin.
#[macro_export]
macro_rules! export_plugin {
    (
        $(state_version: $state_version:literal $(,)?)?
        $(sources: [$($source:ty),* $(,)?] $(,)?)?
        $(indexed: [$($indexed:ty),* $(,)?] $(,)?)?
        $(maps: [$($map:ty),* $(,)?] $(,)?)?
        $(flat_maps: [$($flat_map:ty),* $(,)?] $(,)?)?
        $(streams: [$($stream:ty),* $(,)?] $(,)?)?
        $(decoders: [$($decoder:ty),* $(,)?] $(,)?)?
        $(stores: [$($store:ty),* $(,)?] $(,)?)?
    ) => {
        #[doc(hidden)]
        mod forebay_plugin {
            #![expect(unsafe_code, reason = "an exported symbol and C functions")]
            #[expect(unused_imports, reason = "the lists may name anything in scope")]
            use super::*;
            use $crate::__private as p;

            static PIPES: &[p::PipeEntry] = &[
                $($(p::shim::source_entry::<$source>(),)*)?
                $($(
                    p::shim::source_entry::<$indexed>(),
                    p::shim::count_entry::<$indexed>(),
                    p::shim::get_entry::<$indexed>(),
                )*)?
                $($(p::shim::map_entry::<$map>(),)*)?
                $($(p::shim::flat_map_entry::<$flat_map>(),)*)?
                $($(p::shim::stream_entry::<$stream>(),)*)?
            ];
            static DECODERS: &[p::DecoderEntry] = &[$($(p::shim::decoder_entry::<$decoder>(),)*)?];
            static STORES: &[p::StoreEntry] = &[$($(p::shim::store_entry::<$store>(),)*)?];

            const INFO: p::PluginInfo = p::PluginInfo {
                name: env!("CARGO_PKG_NAME"),
                version: env!("CARGO_PKG_VERSION"),
                license: env!("CARGO_PKG_LICENSE"),
                repository: env!("CARGO_PKG_REPOSITORY"),
                entry: concat!("forebay_plugin_", env!("CARGO_CRATE_NAME")),
                cpu: p::CPU,
                state_version: p::declared(&[$($state_version)?]),
                pipes: &[
                    $($({ const E: p::PipeEntry = p::shim::source_entry::<$source>(); (E.class, E.described) },)*)?
                    $($({ const E: p::PipeEntry = p::shim::source_entry::<$indexed>(); (E.class, E.described) },
                        { const E: p::PipeEntry = p::shim::count_entry::<$indexed>(); (E.class, E.described) },
                        { const E: p::PipeEntry = p::shim::get_entry::<$indexed>(); (E.class, E.described) },)*)?
                    $($({ const E: p::PipeEntry = p::shim::map_entry::<$map>(); (E.class, E.described) },)*)?
                    $($({ const E: p::PipeEntry = p::shim::flat_map_entry::<$flat_map>(); (E.class, E.described) },)*)?
                    $($({ const E: p::PipeEntry = p::shim::stream_entry::<$stream>(); (E.class, E.described) },)*)?
                ],
                decoders: &[$($({ const E: p::DecoderEntry = p::shim::decoder_entry::<$decoder>(); E.described },)*)?],
                stores: &[$($({ const E: p::StoreEntry = p::shim::store_entry::<$store>(); E.described },)*)?],
            };
            const LEN: usize = p::json_len(&INFO);
            const LABEL: &str = concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION"));

            #[used]
            #[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__forebay"))]
            #[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".forebay"))]
            static MANIFEST: p::Manifest<LEN> = p::Manifest::new(&INFO, cfg!(panic = "unwind"));

            unsafe extern "C" fn pipe(
                name: p::RStr<'_>,
                options: p::RStr<'_>,
                place: &mut p::ROption<p::Pipe>,
            ) -> p::Outcome {
                p::make(PIPES, |entry| entry.described.info.name, |entry| entry.make, LABEL, (name, options), place)
            }

            unsafe extern "C" fn decoder(
                name: p::RStr<'_>,
                options: p::RStr<'_>,
                place: &mut p::ROption<p::Decoder>,
            ) -> p::Outcome {
                p::make(DECODERS, |entry| entry.described.info.name, |entry| entry.make, LABEL, (name, options), place)
            }

            unsafe extern "C" fn store(
                name: p::RStr<'_>,
                options: p::RStr<'_>,
                place: &mut p::ROption<p::Store>,
            ) -> p::Outcome {
                p::make(STORES, |entry| entry.described.info.name, |entry| entry.make, LABEL, (name, options), place)
            }

            const PLUGIN: &p::WithMetadata<p::Plugin> = &
                p::WithMetadata::new(p::Plugin { pipe, decoder, store, maps: p::attach });

            extern "C" fn root() -> p::RootResult {
                p::RootResult::ROk(p::erased(p::PluginRef(PLUGIN.static_as_prefix())))
            }

            #[unsafe(export_name = concat!("forebay_plugin_", env!("CARGO_CRATE_NAME")))]
            // SAFETY: `root` gives a `PluginRef` and cannot unwind.
            static ENTRY: p::LibHeader = unsafe { p::header(root) };

            /// Adds this plugin to a program that links it.
            ///
            /// # Errors
            /// `Abi`, when it does not fit.
            pub fn register(registrar: &mut dyn $crate::Registrar) -> $crate::Result<()> {
                registrar.add(p::StaticPlugin { manifest: MANIFEST.to_bytes(), header: &ENTRY })
            }
        }
        pub use forebay_plugin::register;
    };
}
