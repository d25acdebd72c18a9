//! FLAC files made here, of every kind of block, and damaged ones.

use forebay_core::View;

use super::*;

/// Bits, the first one highest.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    count: usize,
}

impl Bits {
    fn put(&mut self, value: i64, bits: u32) {
        for bit in (0..bits).rev() {
            if self.count.is_multiple_of(8) {
                self.bytes.push(0);
            }
            *self.bytes.last_mut().unwrap() |= ((value >> bit & 1) as u8) << (7 - self.count % 8);
            self.count += 1;
        }
    }
}

fn sum(bytes: &[u8], bits: u32, polynomial: u32) -> i64 {
    bytes.iter().fold(0_u32, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte) << (bits - 8), |sum, _| {
            (if sum >> (bits - 1) & 1 == 1 { sum << 1 ^ polynomial } else { sum << 1 }) & ((1 << bits) - 1)
        })
    }) as i64
}

/// How the samples of a channel are coded.
#[derive(Clone, Copy)]
enum Kind {
    Constant,
    Verbatim,
    /// Differences to the sample before, in Rice codes.
    Fixed,
}

/// A file of one block; `total` is what it says of its length.
fn file(bits: u32, channels: &[&[i32]], kind: Kind, total: i64) -> Vec<u8> {
    let mut head = Bits::default();
    head.put(0x664c_6143, 32); // fLaC
    head.put(1, 1);
    head.put(0, 7);
    head.put(34, 24);
    (0..2).for_each(|_| head.put(16, 16));
    head.put(0, 48);
    head.put(8000, 20);
    head.put(channels.len() as i64 - 1, 3);
    head.put(i64::from(bits) - 1, 5);
    head.put(total, 36);
    (0..4).for_each(|_| head.put(0, 32));
    let mut frame = Bits::default();
    frame.put(0b1111_1111_1111_1000, 16);
    frame.put(0b0110_0000, 8); // The number of samples follows; the rate is the stream's.
    frame.put(channels.len() as i64 - 1, 4);
    frame
        .put([(8, 1), (12, 2), (16, 4), (20, 5), (24, 6)].iter().find(|known| known.0 == bits).unwrap().1, 3);
    frame.put(0, 9);
    frame.put(channels[0].len() as i64 - 1, 8);
    frame.put(sum(&frame.bytes, 8, 0x07), 8);
    for samples in channels {
        let kinds = match kind {
            Kind::Constant => 0,
            Kind::Verbatim => 1,
            Kind::Fixed => 0b1001,
        };
        frame.put(kinds << 1, 8);
        match kind {
            Kind::Constant => frame.put(samples[0].into(), bits),
            Kind::Verbatim => samples.iter().for_each(|sample| frame.put((*sample).into(), bits)),
            Kind::Fixed => {
                frame.put(samples[0].into(), bits);
                frame.put(0, 6); // Rice codes in one part.
                frame.put(3, 4);
                for pair in samples.windows(2) {
                    let away = i64::from(pair[1]) - i64::from(pair[0]);
                    let folded = (away << 1) ^ (away >> 63);
                    (0..folded >> 3).for_each(|_| frame.put(0, 1));
                    frame.put(1, 1);
                    frame.put(folded, 3);
                }
            }
        }
    }
    frame.count = frame.bytes.len() * 8;
    frame.put(sum(&frame.bytes, 16, 0x8005), 16);
    [head.bytes, frame.bytes].concat()
}

fn read(file: &[u8], dtype: DType) -> Result<(DType, Vec<i64>, Vec<u8>)> {
    let value = parse_flac(&file.to_vec().into(), dtype)?;
    let View::Struct(sound) = value.view() else { panic!("no struct") };
    assert_eq!(sound.get("rate"), Some(&8000_i64.into()));
    let samples = sound.get("samples").and_then(Value::as_tensor).unwrap();
    Ok((samples.dtype(), samples.shape().to_vec(), samples.data().to_vec()))
}

/// 16 samples of a channel.
fn wave(step: i32) -> Vec<i32> {
    (0..16).map(|at| (at % 5 - 2) * step).collect()
}

#[test]
fn every_width_keeps_its_values() {
    for (bits, dtype) in
        [(8, DType::I8), (12, DType::I16), (16, DType::I16), (20, DType::I32), (24, DType::I32)]
    {
        for kind in [Kind::Verbatim, Kind::Fixed] {
            let (left, right) = (wave(3), wave(-7));
            let bytes = file(bits, &[&left, &right], kind, 16);
            let (found, shape, data) = read(&bytes, DType::ANY).unwrap();
            assert_eq!((found, shape), (dtype, vec![16, 2]));
            let size = dtype.size();
            let samples: Vec<i32> =
                left.iter().zip(&right).flat_map(|(left, right)| [*left, *right]).collect();
            let expected = samples.iter().flat_map(|sample| sample.to_le_bytes().into_iter().take(size));
            assert!(data == expected.collect::<Vec<_>>(), "{bits}");
            let (_, _, floats) = read(&bytes, DType::F32).unwrap();
            let expected = samples
                .iter()
                .flat_map(|sample| (*sample as f32 / 2_f32.powi(bits as i32 - 1)).to_le_bytes());
            assert!(floats == expected.collect::<Vec<_>>(), "{bits}");
        }
    }
    let silent = file(16, &[&[-5; 16]], Kind::Constant, 16);
    assert_eq!(read(&silent, DType::ANY).unwrap().2, (-5_i16).to_le_bytes().repeat(16));
}

#[test]
fn lengths_that_are_not_known_or_wrong() {
    let (samples, dtype) = (wave(9), DType::ANY);
    let stream = |total| file(16, &[&samples], Kind::Fixed, total);
    assert_eq!(read(&stream(0), dtype).unwrap(), read(&stream(16), dtype).unwrap());
    for total in [15, 17] {
        assert_eq!(read(&stream(total), dtype).unwrap_err().kind(), ErrorKind::Corrupt, "{total}");
    }
    // What stands behind the last sample is not looked at.
    let tagged = [stream(16), b"TAG and so on".to_vec()].concat();
    assert_eq!(read(&tagged, dtype).unwrap(), read(&stream(16), dtype).unwrap());
}

#[test]
fn limits_come_before_memory() {
    let long = file(16, &[&wave(1)], Kind::Fixed, (1 << 36) - 1);
    assert_eq!(read(&long, DType::ANY).unwrap_err().kind(), ErrorKind::Limit);
    for total in [0, 16] {
        let bytes = file(16, &[&wave(1)], Kind::Fixed, total).into();
        let limited = decode(&bytes, DType::ANY, 31, &|len| Ok(BufferMut::zeroed(len)));
        assert_eq!(limited.unwrap_err().kind(), ErrorKind::Limit, "{total}");
    }
    assert_eq!(read(&long, DType::F64).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn damage_is_an_error_or_a_value() {
    let whole = file(16, &[&wave(300), &wave(-4)], Kind::Fixed, 16);
    for len in 0..whole.len() {
        assert!(read(&whole[..len], DType::ANY).is_err(), "{len} of {}", whole.len());
    }
    let mut refused = 0;
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << bit;
            refused += u32::from(parse_flac(&bytes.into(), DType::F32).is_err());
        }
    }
    // Every bit of a block is under a sum; of the header some say nothing of the samples.
    assert!(refused > 400, "{refused}");
}

#[test]
fn whatever_a_block_with_right_sums_says_is_an_error_or_a_value() {
    let whole = file(24, &[&wave(300), &wave(-4)], Kind::Fixed, 16);
    let (start, behind) = (42, whole.len() - 2);
    for at in start..behind {
        for flip in [1_u8, 0x10, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] ^= flip;
            let header = sum(&bytes[start..start + 6], 8, 0x07) as u8;
            bytes[start + 6] = header;
            let frame = sum(&bytes[start..behind], 16, 0x8005) as u16;
            bytes[behind..].copy_from_slice(&frame.to_be_bytes());
            let _ = parse_flac(&bytes.into(), DType::ANY);
        }
    }
}

/// The reference encoder wrote them of one another.
#[test]
fn flac_gives_the_samples_of_the_wav_it_was_made_of() {
    for name in ["mono", "stereo"] {
        let bytes = |extension: &str| {
            let file = format!(concat!(env!("CARGO_MANIFEST_DIR"), "/seeds/{}.{}"), name, extension);
            Buffer::from(std::fs::read(file).unwrap())
        };
        for dtype in [DType::ANY, DType::F32] {
            let wav = crate::parse_wav(&bytes("wav"), dtype).unwrap();
            assert_eq!(parse_flac(&bytes("flac"), dtype).unwrap(), wav, "{name}");
        }
    }
}
