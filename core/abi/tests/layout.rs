//! The frozen page, byte by byte: size, alignment and every field's offset, typed by hand. A change here is a change of
//! the ABI's major number; what is only added to the end of a table is a change of its minor number.

use std::mem::{align_of, offset_of, size_of};

use forebay_abi::{
    ArrowArray, ArrowData, ArrowSchema, Buffer, BufferMut, Chunk, Context, DType, Decoder, DecoderTable,
    Fault, HostServices, Key, Limits, Listing, Maps, Outcome, Owner, Pipe, PipeTable, Plugin, Port, Row,
    Schema, State, Store, StoreTable, Str, Struct, Tensor, Value, Waker, Wanted,
    abi_stable::{StableAbi, type_layout::TypeLayout},
};

/// What was typed: the size, the alignment, and the fields with their offsets, in order.
type Page = (usize, usize, &'static [(&'static str, usize)]);

/// The fields of a type and where C lays them: private ones too, which `offset_of` cannot see from here.
fn laid_out(layout: &'static TypeLayout) -> Vec<(&'static str, usize)> {
    let mut end = 0_usize;
    let fields = layout.get_fields().unwrap_or_else(|| panic!("{} has no fields", layout.name()));
    fields
        .iter()
        .map(|field| {
            // A field's size is told by its layout; that of a function is a pointer's.
            let (size, align) = match field.is_function() {
                true => (size_of::<usize>(), align_of::<usize>()),
                false => (field.layout().size(), field.layout().alignment()),
            };
            let at = end.next_multiple_of(align);
            end = at + size;
            (field.name(), at)
        })
        .collect()
}

#[track_caller]
fn assert_page<T: StableAbi>(page: Page) {
    let layout = T::LAYOUT;
    let name = layout.name();
    assert_eq!(format!("{:?}", layout.repr_attr()), "C", "{name}");
    assert_eq!((layout.size(), layout.alignment()), (size_of::<T>(), align_of::<T>()), "{name}");
    assert_eq!((size_of::<T>(), align_of::<T>(), &laid_out(layout)[..]), page, "{name}");
}

#[test]
fn bytes_and_text() {
    assert_page::<Owner>((24, 8, &[("retain", 0), ("release", 8), ("file", 16)]));
    assert_page::<Buffer>((24, 8, &[("ptr", 0), ("len", 8), ("owner", 16)]));
    assert_page::<BufferMut>((24, 8, &[("ptr", 0), ("len", 8), ("owner", 16)]));
    assert_page::<Str>((24, 8, &[("bytes", 0)]));
    assert_page::<Waker>((24, 8, &[("wake", 0), ("target", 8), ("owner", 16)]));
}

#[test]
fn values() {
    assert_page::<DType>((4, 2, &[("code", 0), ("bits", 1), ("lanes", 2)]));
    assert_page::<Value>((32, 8, &[("tag", 0), ("word", 4), ("payload", 8)]));
    assert_page::<Tensor>((
        160,
        8,
        &[("dtype", 0), ("ndim", 4), ("shape", 8), ("strides", 72), ("data", 136)],
    ));
    assert_page::<Struct>((24, 8, &[("schema", 0), ("values", 16)]));
    assert_page::<ArrowData>((152, 8, &[("schema", 0), ("array", 72)]));
    assert_page::<ArrowSchema>((
        72,
        8,
        &[
            ("format", 0),
            ("name", 8),
            ("metadata", 16),
            ("flags", 24),
            ("n_children", 32),
            ("children", 40),
            ("dictionary", 48),
            ("release", 56),
            ("private_data", 64),
        ],
    ));
    assert_page::<ArrowArray>((
        80,
        8,
        &[
            ("length", 0),
            ("null_count", 8),
            ("offset", 16),
            ("n_buffers", 24),
            ("n_children", 32),
            ("buffers", 40),
            ("children", 48),
            ("dictionary", 56),
            ("release", 64),
            ("private_data", 72),
        ],
    ));
}

#[test]
fn samples() {
    assert_page::<Key>((56, 8, &[("origin", 0), ("name", 24), ("index", 48)]));
    assert_page::<Schema>((16, 8, &[("names", 0), ("owner", 8)]));
    assert_page::<Row>((72, 8, &[("uid", 0), ("key", 8), ("schema", 64), ("first", 68)]));
    assert_page::<Chunk>((104, 8, &[("schemas", 0), ("rows", 32), ("values", 64), ("head", 96)]));
    assert_page::<Port>((112, 8, &[("chunk", 0), ("ended", 104)]));
}

#[test]
fn calls() {
    assert_page::<Outcome>((32, 8, &[("code", 0), ("detail", 4), ("fault", 8)]));
    assert_page::<Fault>((72, 8, &[("kind", 0), ("message", 8), ("context", 40)]));
    assert_page::<State>((72, 8, &[("version", 0), ("bytes", 8), ("again", 40)]));
    assert_page::<Limits>((16, 8, &[("bytes", 0), ("pixels", 8)]));
    assert_page::<Listing>((40, 8, &[("path", 0), ("folder", 32)]));
    assert_page::<Wanted<'static>>((24, 8, &[("dtype", 0), ("extension", 8)]));
    assert_page::<Pipe>((16, 8, &[("instance", 0), ("table", 8)]));
    assert_page::<Decoder>((16, 8, &[("instance", 0), ("table", 8)]));
    assert_page::<Store>((16, 8, &[("instance", 0), ("table", 8)]));
    assert_page::<Context>((
        144,
        8,
        &[
            ("services", 0),
            ("host", 8),
            ("seed", 16),
            ("epoch", 24),
            ("pass", 32),
            ("node", 40),
            ("rank", 48),
            ("world_size", 52),
            ("limits", 56),
            ("waker", 72),
            ("worker", 80),
            ("workers", 84),
            ("reserved", 88),
        ],
    ));
}

/// The entries of a table in order, each a pointer, and none beside them.
macro_rules! assert_table {
    ($table:ty: $($entry:ident),*) => {
        let entries = [$(offset_of!($table, $entry)),*];
        let count = entries.len();
        assert!(entries.into_iter().eq((0..count).map(|at| 8 * at)), "{}", stringify!($table));
        assert_eq!(size_of::<$table>(), 8 * count, "{}", stringify!($table));
    };
}

#[test]
fn tables() {
    assert_table!(Plugin: pipe, decoder, store, maps);
    assert_table!(Maps: begin, end, cut);
    assert_table!(PipeTable: free, reset, poll, map, state, restore, len, expand, probe, length);
    assert_table!(DecoderTable: retain, release, probe, decode);
    assert_table!(StoreTable: retain, release, list, size, read, map);
    assert_table!(HostServices: alloc, cancelled, log, decoder, store);
}

/// That `laid_out` says what the compiler does, for types whose fields can be seen from here.
#[test]
fn the_offsets_are_the_compilers() {
    assert_eq!([offset_of!(Key, origin), offset_of!(Key, name), offset_of!(Key, index)], [0, 24, 48]);
    assert_eq!([offset_of!(Fault, message), offset_of!(Fault, context)], [8, 40]);
    assert_eq!(
        [offset_of!(Context, world_size), offset_of!(Context, limits), offset_of!(Context, waker)],
        [52, 56, 72]
    );
    assert_eq!(
        [offset_of!(Wanted<'static>, extension), offset_of!(Port, ended), offset_of!(Outcome, fault)],
        [8, 104, 8]
    );
}

/// The size of a type of the C interface, and the offsets of its fields.
macro_rules! laid_out_c {
    ($type:ident, $($field:ident),*) => {
        (size_of::<c::$type>(), &[$(offset_of!(c::$type, $field)),*][..])
    };
}

#[test]
fn the_tables_of_c() {
    use forebay_abi::c;
    assert_eq!(laid_out_c!(ForebayError, size, message), (1024, &[0, 8][..]));
    assert_eq!(laid_out_c!(ForebayData, bytes, len, release, owner), (32, &[0, 8, 16, 24][..]));
    assert_eq!(laid_out_c!(ForebayOptions, size, json, text, integer, number), (40, &[0, 8, 16, 24, 32][..]));
    assert_eq!(laid_out_c!(ForebayInput, size, bytes, len, extension, dtype), (40, &[0, 8, 16, 24, 32][..]));
    assert_eq!(
        laid_out_c!(ForebayDecoder, size, name, open, close, probe, decode),
        (48, &[0, 8, 16, 24, 32, 40][..])
    );
    assert_eq!(
        laid_out_c!(ForebaySource, size, name, open, close, reset, next, state, restore, len),
        (72, &[0, 8, 16, 24, 32, 40, 48, 56, 64][..])
    );
    assert_eq!(
        laid_out_c!(ForebayPlugin, size, major, minor, manifest, decoders, sources),
        (40, &[0, 8, 12, 16, 24, 32][..])
    );
    let host = laid_out_c!(
        ForebayHost,
        size,
        max_bytes,
        max_pixels,
        seed,
        epoch,
        pass,
        alloc,
        cancelled,
        log,
        put_null,
        put_bool,
        put_int,
        put_uint,
        put_float,
        put_text,
        put_bytes,
        put_tensor,
        put_arrow,
        put_list,
        put_struct,
        add_item,
        add_field,
        set_key,
        set_number
    );
    assert_eq!(host, (192, &(0..24).map(|word| word * 8).collect::<Vec<_>>()[..]));
}

#[test]
fn the_dtypes_of_c_are_those_of_tensors() {
    use forebay_abi::c;
    let words = [
        c::FOREBAY_BOOL,
        c::FOREBAY_INT8,
        c::FOREBAY_INT16,
        c::FOREBAY_INT32,
        c::FOREBAY_INT64,
        c::FOREBAY_UINT8,
        c::FOREBAY_UINT16,
        c::FOREBAY_UINT32,
        c::FOREBAY_UINT64,
        c::FOREBAY_FLOAT16,
        c::FOREBAY_BFLOAT16,
        c::FOREBAY_FLOAT32,
        c::FOREBAY_FLOAT64,
    ];
    let dtypes = DType::NAMED
        .iter()
        .map(|(dtype, _)| u32::from(dtype.code) | u32::from(dtype.bits) << 8 | u32::from(dtype.lanes) << 16);
    assert_eq!(words.to_vec(), dtypes.collect::<Vec<_>>());
}

#[test]
fn the_numbers_that_cross() {
    use forebay_abi::{code, length, tag};
    assert_eq!(
        [code::READY, code::NEED_INPUT, code::PENDING, code::END, code::REWIND, code::ERROR],
        [0, 1, 2, 3, 4, 5]
    );
    assert_eq!(
        [
            tag::NULL,
            tag::SCALAR,
            tag::STR,
            tag::BYTES,
            tag::TENSOR,
            tag::LIST,
            tag::STRUCT,
            tag::ARROW,
            tag::OPAQUE
        ],
        [0, 1, 2, 3, 4, 5, 6, 7, 8],
    );
    assert_eq!([length::ENDLESS, length::UNKNOWN], [u64::MAX, u64::MAX - 1]);
    assert_eq!((forebay_abi::ABI_MAJOR, forebay_abi::MAX_DIMS), (1, 8));
    let version = format!("{}.{}.", forebay_abi::ABI_MAJOR, forebay_abi::ABI_MINOR);
    assert!(env!("CARGO_PKG_VERSION").starts_with(&version), "the crate's version is the ABI's: {version}");
}
