//! The table of a Store.

use std::{marker::PhantomData, sync::Arc};

use forebay_abi::{
    Buffer, Listing, Outcome, Store as RawStore, StoreTable, StoreTableRef,
    abi_stable::{
        prefix_type::WithMetadata,
        std_types::{ROption, RStr, RVec},
    },
};

use super::{
    decoder::{release, retain},
    guard::Instance,
    outcome,
};
use crate::{Options, Result, Store, descriptor::Described, export::StoreEntry};

/// The entry of a store.
#[must_use]
pub const fn store_entry<T: Store>() -> StoreEntry {
    StoreEntry { described: Described { info: T::INFO, options: T::Options::SPECS }, make: make::<T> }
}

fn make<T: Store>(options: &str, _: &'static str) -> Result<RawStore> {
    let store = T::new(T::Options::parse(options)?)?;
    let instance = Arc::into_raw(Arc::new(Instance::new(store))).cast();
    // SAFETY: the instance is of the table's type, and its one reference is given up.
    Ok(unsafe { RawStore::from_raw(instance, Table::<T>::REF) })
}

struct Table<T>(PhantomData<T>);

impl<T: Store> Table<T> {
    const TABLE: &'static WithMetadata<StoreTable> = &WithMetadata::new(StoreTable {
        retain: retain::<T>,
        release: release::<T>,
        list: list::<T>,
        size: size::<T>,
        read: read::<T>,
        map: map::<T>,
    });
    const REF: StoreTableRef = StoreTableRef(Self::TABLE.static_as_prefix());
}

unsafe extern "C" fn list<T: Store>(this: *const (), path: RStr<'_>, place: &mut RVec<Listing>) -> Outcome {
    // SAFETY: the table's rule: `this` is a live instance of this type, here and below.
    let this = unsafe { &*this.cast::<Instance<T>>() };
    this.with(|store| {
        let entries = store.list(path.as_str());
        outcome(entries.map(|entries| {
            *place =
                entries.into_iter().map(|(path, folder)| Listing { path: path.into(), folder }).collect();
        }))
    })
}

unsafe extern "C" fn size<T: Store>(this: *const (), path: RStr<'_>, place: &mut u64) -> Outcome {
    // SAFETY: as above.
    let this = unsafe { &*this.cast::<Instance<T>>() };
    this.with(|store| outcome(store.size(path.as_str()).map(|size| *place = size)))
}

unsafe extern "C" fn read<T: Store>(
    this: *const (),
    path: RStr<'_>,
    offset: u64,
    len: u64,
    place: &mut Buffer,
) -> Outcome {
    // SAFETY: as above.
    let this = unsafe { &*this.cast::<Instance<T>>() };
    this.with(|store| outcome(store.read_range(path.as_str(), offset, len).map(|bytes| *place = bytes)))
}

unsafe extern "C" fn map<T: Store>(this: *const (), path: RStr<'_>, place: &mut ROption<Buffer>) -> Outcome {
    // SAFETY: as above.
    let this = unsafe { &*this.cast::<Instance<T>>() };
    this.with(|store| outcome(store.map(path.as_str()).map(|bytes| *place = bytes.into())))
}
