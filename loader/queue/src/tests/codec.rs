//! What goes through the codec comes out the same, and damaged bytes are an error.

use forebay_core::{
    codec::{Decoder, Encoder},
    random::Rng,
};

use super::*;

/// A sample for every kind of value there is, and shapes of every sort.
pub(super) fn all_kinds() -> Chunk {
    let mut chunk = Chunk::new();
    let mut sample = Sample::new(u64::MAX, Key::whole("töplevel/☂.bin"));
    sample.set("null", Value::NULL);
    sample.set("yes", true);
    for (at, (dtype, name)) in DType::NAMED.iter().enumerate() {
        sample.set(&format!("scalar {name}"), Value::scalar(*dtype, 0xfedc_ba98_7654_3210_u64 >> at));
        let data = Buffer::from(pattern(at as u64, 2 * 3 * dtype.size()));
        sample.set(&format!("tensor {name}"), Tensor::try_new(*dtype, &[2, 3], data).unwrap());
    }
    sample.set("nan", Value::from(f64::from_bits(0x7ff8_0000_dead_beef)));
    sample.set("text", "heron");
    sample.set("no text", "");
    sample.set("long text", "☂".repeat(5000));
    sample.set("bytes", Buffer::from(vec![0, 255, 7]));
    sample.set("long bytes", Buffer::from(pattern(9, 70_000)));
    sample.set("0 axes", Tensor::try_new(DType::F32, &[], vec![0; 4].into()).unwrap());
    sample.set("8 axes", Tensor::try_new(DType::U8, &[1, 2, 1, 2, 1, 1, 1, 2], vec![1; 8].into()).unwrap());
    sample.set("empty", Tensor::try_new(DType::I64, &[3, 0, 5], Buffer::EMPTY).unwrap());
    sample.set("long tensor", Tensor::try_new(DType::F32, &[100, 100], pattern(4, 40_000).into()).unwrap());
    let inner = Value::structure(vec![("a".into(), Value::from(1_u8)), ("b".into(), Value::list(vec![]))]);
    let list = vec![inner.clone(), Value::NULL, Value::list(vec![Value::from("x"), inner])];
    sample
        .set("nested", Value::structure(vec![("list".into(), Value::list(list)), ("a".into(), Value::NULL)]));
    chunk.push_sample(&mut sample);
    chunk.push(1, Key { origin: "o".into(), name: "n".into(), index: 3 }, &Schema::empty(), []);
    chunk.push(2, Key::default(), &Schema::new(["text", "text"]), [Value::from("twice")]);
    chunk
}

/// Two samples, the second with a value that cannot leave its process.
pub(super) fn with_an_opaque_value() -> Chunk {
    let mut chunk = numbered(0, 1);
    let mut sample = Sample::new(7, Key { origin: "shard.tar".into(), name: "0007".into(), index: 7 });
    let opaque = Value::opaque("handle", 17_u32);
    let inner = Value::structure(vec![("deep".into(), Value::list(vec![Value::NULL, opaque]))]);
    sample.set("field", inner);
    chunk.push_sample(&mut sample);
    chunk
}

fn encode(chunk: &mut Chunk) -> (Vec<u8>, Vec<Buffer>) {
    let mut encoder = Encoder::default();
    encoder.encode(chunk).unwrap();
    (encoder.flat.clone(), encoder.parts.clone())
}

fn decode(flat: &[u8], parts: &[Buffer]) -> Result<Chunk> {
    Decoder::default().decode(flat, parts)
}

/// All that a sample is; equality of samples does not look at everything.
fn told(chunk: Chunk) -> Vec<String> {
    let tell = |sample: &Sample| {
        let key = sample.key();
        format!("{} {:?} {:?} {} {:?}", sample.uid(), key.origin, key.name, key.index, sample.schema())
    };
    samples(chunk).iter().map(tell).collect()
}

#[test]
fn large_buffers_are_not_copied() {
    let mut chunk = all_kinds();
    let (flat, parts) = encode(&mut chunk);
    assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [15_000, 70_000, 40_000]);
    assert!(flat.len() < 8000);
    let before = samples(chunk);
    let after = samples(decode(&flat, &parts).unwrap());
    let place = |samples: &[Sample]| samples[0].get("long bytes").unwrap().as_bytes().unwrap().as_ptr();
    assert_eq!(place(&before), place(&after));
}

#[test]
fn the_chunk_stays_whole_and_comes_out_the_same() {
    let mut chunk = all_kinds();
    let (flat, parts) = encode(&mut chunk);
    let copy = || decode(&flat, &parts).unwrap();
    assert_eq!(told(copy()), told(all_kinds()));
    assert_eq!(samples(copy()), samples(all_kinds()));
    assert_eq!(samples(chunk), samples(all_kinds()));
}

#[test]
fn a_streams_schema_stays_one_object() {
    let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
    let mut schemas = Vec::new();
    for n in 0..5 {
        encoder.encode(&numbered(n, 3)).unwrap();
        for sample in samples(decoder.decode(&encoder.flat, &encoder.parts).unwrap()) {
            schemas.push(sample.schema().clone());
        }
    }
    assert!(schemas.iter().all(|schema| schema.is(&schemas[0])));
}

#[test]
fn what_cannot_cross_is_named() {
    let mut chunk = with_an_opaque_value();
    let error = Encoder::default().encode(&chunk).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert_eq!((error.get("field"), error.get("sample")), (Some("field.deep[1]"), Some("shard.tar!/0007")));
    assert!(error.message().contains("`handle`"), "{error}");
    assert_eq!(chunk.len(), 2, "the chunk is as it was");
    assert_eq!(chunk.pop().unwrap().uid(), 0);
}

#[test]
fn values_too_deep_are_refused_both_ways() {
    let deep = |levels: usize| {
        let mut sample = Sample::new(0, Key::default());
        sample.set("x", (0..levels).fold(Value::NULL, |inner, _| Value::list(vec![inner])));
        one(sample)
    };
    assert!(Encoder::default().encode(&deep(64)).is_ok());
    assert_eq!(Encoder::default().encode(&deep(65)).unwrap_err().kind(), ErrorKind::Limit);
    let (mut flat, _) = encode(&mut deep(64));
    let at = flat.len() - 1;
    let lists: Vec<u8> = [5, 1, 0, 0, 0].repeat(100_000);
    flat.splice(at..at, lists);
    assert_eq!(decode(&flat, &[]).map(drop).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn every_cut_is_an_error() {
    let (flat, parts) = encode(&mut all_kinds());
    for len in 0..flat.len() {
        assert_eq!(decode(&flat[..len], &parts).map(drop).unwrap_err().kind(), ErrorKind::Corrupt);
    }
    assert!(decode(&flat, &parts[1..]).is_err());
    assert!(decode(&[flat.as_slice(), &[0]].concat(), &parts).is_err());
}

#[test]
fn flipped_bits_never_panic() {
    let (flat, parts) = encode(&mut all_kinds());
    let mut refused = 0;
    for bit in 0..flat.len() * 8 {
        let mut flat = flat.clone();
        flat[bit / 8] ^= 1 << (bit % 8);
        refused += u32::from(decode(&flat, &parts).is_err());
    }
    assert!(refused > 1000, "{refused}");
    let mut random = Rng::new(3, 4);
    for _ in 0..20_000 {
        let mut flat = flat.clone();
        for _ in 0..1 + random.below(8) {
            let at = random.below(flat.len() as u64) as usize;
            flat[at] = random.u64() as u8;
        }
        let _ = decode(&flat, &parts);
    }
}

fn any_value(random: &mut Rng, depth: u32) -> Value {
    let text = |random: &mut Rng| "ab☂".repeat(random.below(900) as usize);
    match random.below(if depth > 3 { 6 } else { 8 }) {
        0 => Value::NULL,
        1 => {
            let (dtype, _) = DType::NAMED[random.below(DType::NAMED.len() as u64) as usize];
            Value::scalar(dtype, random.u64())
        }
        2 => text(random).into(),
        3 => Buffer::from(pattern(random.u64() >> 8, random.below(5000) as usize)).into(),
        4 | 5 => {
            let (dtype, _) = DType::NAMED[random.below(DType::NAMED.len() as u64) as usize];
            let shape: Vec<usize> = (0..random.below(5)).map(|_| random.below(7) as usize).collect();
            let len = shape.iter().product::<usize>() * dtype.size();
            Tensor::try_new(dtype, &shape, pattern(1, len).into()).unwrap().into()
        }
        6 => Value::list((0..random.below(4)).map(|_| any_value(random, depth + 1)).collect()),
        _ => {
            let fields = (0..random.below(4)).map(|at| (at.to_string().into(), any_value(random, depth + 1)));
            Value::structure(fields.collect())
        }
    }
}

#[test]
fn any_chunk_comes_out_the_same() {
    let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
    for seed in 0..400 {
        let build = || {
            let mut random = Rng::new(seed, 0);
            let mut chunk = Chunk::new();
            for _ in 0..random.below(20) {
                let origin = format!("origin {}", random.below(3));
                let key = Key {
                    origin: origin.into(),
                    name: random.below(9).to_string().into(),
                    index: random.u64(),
                };
                let mut sample = Sample::new(random.u64(), key);
                for field in 0..random.below(5) {
                    sample.set(&format!("field {field}"), any_value(&mut random, 0));
                }
                chunk.push_sample(&mut sample);
            }
            // Some were taken already.
            (0..random.below(3)).for_each(|_| drop(chunk.pop()));
            chunk
        };
        encoder.encode(&build()).unwrap();
        let decode = |decoder: &mut Decoder| decoder.decode(&encoder.flat, &encoder.parts).unwrap();
        assert_eq!(told(decode(&mut decoder)), told(build()), "seed {seed}");
        assert_eq!(samples(decode(&mut decoder)), samples(build()), "seed {seed}");
    }
}
