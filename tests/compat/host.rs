//! A host of every release, in little: loads the plugin at the first argument by the loader's own check, and prints what its decoder makes
//! of what its source gives, from the start, and from a saved position on.

#[path = "library.rs"]
mod library;

use std::{env, path::Path, ptr};

use forebay_core::{
    AnyDecoder, Buffer, BufferMut, Chunk, Context, Limits, Sample, State, Wanted,
    abi::{
        self, HostServices, HostServicesRef, Outcome, Pipe,
        abi_stable::{
            prefix_type::WithMetadata,
            std_types::{ROption, RSlice, RSliceMut, RStr},
        },
        code,
    },
    shim::check,
    write_json,
};

const SERVICES: &WithMetadata<HostServices> =
    &WithMetadata::new(HostServices { alloc, cancelled, log, decoder, store });

extern "C" fn alloc(_: *const (), len: usize, place: &mut ROption<BufferMut>) -> Outcome {
    *place = ROption::RSome(BufferMut::from_owner(vec![0xa5; len]));
    Outcome::of(code::READY, 0)
}

extern "C" fn cancelled(_: *const ()) -> bool {
    false
}

extern "C" fn log(_: *const (), _: u32, _: RStr<'_>) {}

extern "C" fn decoder(
    _: *const (),
    _: RStr<'_>,
    _: RSlice<'_, u8>,
    _: RStr<'_>,
    _: &mut ROption<abi::Decoder>,
) -> Outcome {
    Outcome::of(code::READY, 0)
}

extern "C" fn store(_: *const (), _: RStr<'_>, _: &mut ROption<abi::Store>) -> Outcome {
    Outcome::of(code::READY, 0)
}

fn context() -> abi::Context {
    abi::Context {
        services: HostServicesRef(SERVICES.static_as_prefix()),
        host: ptr::null(),
        seed: 7,
        epoch: 0,
        pass: 0,
        node: 3,
        rank: 0,
        world_size: 1,
        limits: Limits::DEFAULT,
        waker: ptr::null(),
        worker: 0,
        workers: 0,
        reserved: [0; 7],
    }
}

/// At most so many samples of a pipe without input.
fn poll(pipe: &Pipe, cx: &abi::Context, most: usize) -> Vec<Sample> {
    let mut given = Vec::new();
    while given.len() < most {
        let mut outs = [Chunk::new()];
        // SAFETY: the pipe was made by the table beside it, and nothing else calls it. Likewise below.
        let outcome = unsafe {
            pipe.table.poll()(
                pipe.instance,
                cx,
                RSliceMut::from(&mut [][..]),
                RSliceMut::from(&mut outs[..]),
                3,
            )
        };
        let ended = outcome.code == code::END;
        check(outcome).unwrap();
        given.extend(std::iter::from_fn(|| outs[0].pop()));
        if ended {
            break;
        }
    }
    given
}

/// One sample in a line.
fn told(mut sample: Sample, decoder: &AnyDecoder, cx: &abi::Context) -> String {
    let bytes = sample.get("it.counted").unwrap().as_bytes().unwrap().clone();
    let wanted = Wanted { extension: "counted", ..Wanted::default() };
    sample.set("it.counted", decoder.decode(&bytes, &wanted, &Context::new(cx)).unwrap());
    let mut line = format!("{} {}", sample.uid(), sample.key()).into_bytes();
    for (name, value) in sample.fields() {
        line.extend(format!(" {}=", name.as_str()).into_bytes());
        write_json(value, &mut line).unwrap();
    }
    String::from_utf8(line).unwrap()
}

fn main() {
    let args: Vec<String> = env::args().collect();
    let plugin = library::load(Path::new(&args[1]), &args[2]).unwrap_or_else(|error| panic!("{error}"));
    let cx = context();
    let mut place = ROption::RNone;
    // SAFETY: the layout was just checked. Likewise below.
    check(unsafe { plugin.decoder()(RStr::from("counted"), RStr::from("{}"), &mut place) }).unwrap();
    let decoder = AnyDecoder::new(place.into_option().unwrap());
    let source = || {
        let mut place = ROption::RNone;
        check(unsafe { plugin.pipe()(RStr::from("ticks"), RStr::from("{\"count\": 12}"), &mut place) })
            .unwrap();
        let pipe = place.into_option().unwrap();
        check(unsafe { pipe.table.reset()(pipe.instance, &cx) }).unwrap();
        pipe
    };

    let mut state = State::default();
    let first = source();
    for sample in poll(&first, &cx, 6) {
        println!("{}", told(sample, &decoder, &cx));
    }
    check(unsafe { first.table.state()(first.instance, &mut state) }).unwrap();
    check(unsafe { first.table.free()(first.instance) }).unwrap();
    let second = source();
    check(unsafe { second.table.restore()(second.instance, &cx, &state) }).unwrap();
    for sample in poll(&second, &cx, usize::MAX) {
        println!("{}", told(sample, &decoder, &cx));
    }
    check(unsafe { second.table.free()(second.instance) }).unwrap();

    let cut = Buffer::from(b"\x05\0\0\0four".to_vec());
    let error = decoder.decode(&cut, &Wanted::default(), &Context::new(&cx)).unwrap_err();
    println!("{:?}: {}, byte {:?}", error.kind(), error.message(), error.get("byte"));
}
