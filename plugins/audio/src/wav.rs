//! `wav`: a WAV file to its samples.
//!
//! ```toml
//! [wav]
//! gives = "a struct: `samples`, a tensor `[frames, channels]`; `rate`, frames a second; `bits`, as stored"
//! when = "sound; 16-bit and float samples are not copied"
//! ```

use forebay_core::{
    Buffer, BufferMut, Context, DType, Decoder, DecoderInfo, Error, Limits, Magic, NoOptions, Result, Value,
    Wanted,
};

use crate::{
    companding::{a_law, mu_law},
    riff::{Coding, Sound, sound},
    sound::{chosen, scaled, size, value},
};

/// Decodes a WAV file: see [`parse_wav`].
#[derive(Debug)]
pub struct Wav;

impl Decoder for Wav {
    const INFO: DecoderInfo = DecoderInfo {
        name: "wav",
        summary: "WAV sound to `samples` [frames, channels], `rate` and `bits`",
        extensions: &["wav", "wave"],
        media_types: &["audio/wav", "audio/vnd.wave"],
        magic: &[Magic { offset: 8, bytes: b"WAVE" }],
        ..DecoderInfo::DEFAULT
    };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }

    fn decode(&self, bytes: &Buffer, wanted: &Wanted, cx: &Context) -> Result<Value> {
        decode(bytes, wanted.dtype, cx.limits().bytes, &|len| cx.alloc(len))
    }
}

/// Reads a WAV file: a struct of `samples`, a tensor `[frames, channels]`; `rate`, frames a second; and `bits`, as stored for each sample.
///
/// With `dtype` F32 samples are between -1 and 1, with [`DType::ANY`] of the type that is nearest to what is stored: uint8, int16, int32,
/// float32 or float64.
///
/// ```
/// use forebay_core::{DType, View};
///
/// let head = b"RIFF\x28\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0data\x04\0\0\0";
/// let file = [&head[..], &[0, 0, 0, 0x40]].concat().into();
/// let value = forebay_audio::parse_wav(&file, DType::F32)?;
/// let View::Struct(sound) = value.view() else { unreachable!() };
/// let samples = sound.get("samples").and_then(|samples| samples.as_tensor()).unwrap();
/// assert_eq!((samples.shape(), &samples.data()[4..]), (&[2, 1][..], &0.5_f32.to_le_bytes()[..]));
/// # Ok::<(), forebay_core::Error>(())
/// ```
///
/// # Errors
/// `Corrupt` with the byte; `Unsupported` for other formats than PCM, float, mu-law and A-law, and for another `dtype`; `Limit` when
/// the samples need more memory than is usual for one value.
pub fn parse_wav(bytes: &Buffer, dtype: DType) -> Result<Value> {
    decode(bytes, dtype, Limits::DEFAULT.bytes, &|len| Ok(BufferMut::zeroed(len)))
}

fn decode(
    bytes: &Buffer,
    wanted: DType,
    limit: u64,
    alloc: &dyn Fn(usize) -> Result<BufferMut>,
) -> Result<Value> {
    let sound = sound(bytes)?;
    let data = bytes.slice(sound.data.clone());
    let frame = sound.width * sound.channels;
    if !data.len().is_multiple_of(frame) {
        let message = format!("{} bytes of data end within a frame of {frame}", data.len());
        return Err(Error::corrupt(message).context("byte", sound.data.end));
    }
    let frames = data.len() / frame;
    let stored = stored(&sound);
    let dtype = chosen(wanted, stored)?;
    let len = size(frames, sound.channels, dtype, limit)?;
    let as_is =
        dtype == stored && sound.width == dtype.size() && matches!(sound.coding, Coding::Pcm | Coding::Float);
    let samples = if as_is && data.as_ptr().addr().is_multiple_of(dtype.size()) {
        data
    } else {
        let mut out = alloc(len)?;
        if as_is {
            out.copy_from_slice(&data);
        } else {
            convert(&sound, &data, dtype, &mut out);
        }
        out.freeze()
    };
    value(samples, dtype, [frames, sound.channels], sound.rate, sound.bits.into())
}

/// The type that is nearest to what is stored.
fn stored(sound: &Sound) -> DType {
    match (sound.coding, sound.width) {
        (Coding::Float, 4) => DType::F32,
        (Coding::Float, _) => DType::F64,
        (Coding::MuLaw | Coding::ALaw, _) | (Coding::Pcm, 2) => DType::I16,
        (Coding::Pcm, 1) => DType::U8,
        (Coding::Pcm, _) => DType::I32,
    }
}

/// Writes the samples as `dtype`, which is float32 or as stored, only wider.
fn convert(sound: &Sound, data: &[u8], dtype: DType, out: &mut [u8]) {
    let float = dtype == DType::F32;
    match (sound.coding, sound.width, float) {
        (Coding::Pcm, 1, _) => each(data, out, |[x]| ((f32::from(x) - 128.0) / 128.0).to_le_bytes()),
        (Coding::Pcm, 2, _) => each(data, out, |x| scaled(i16::from_le_bytes(x).into(), 15)),
        (Coding::Pcm, 3, true) => each(data, out, |x| scaled(wide(x), 23)),
        (Coding::Pcm, 3, false) => each(data, out, |x| wide(x).to_le_bytes()),
        (Coding::Pcm, _, _) => each(data, out, |x| scaled(i32::from_le_bytes(x), 31)),
        // The nearest float, as everywhere.
        #[expect(clippy::cast_possible_truncation, reason = "rounding is meant")]
        (Coding::Float, _, _) => each(data, out, |x| (f64::from_le_bytes(x) as f32).to_le_bytes()),
        (Coding::MuLaw, _, true) => each(data, out, |[x]| scaled(mu_law(x).into(), 15)),
        (Coding::MuLaw, _, false) => each(data, out, |[x]| mu_law(x).to_le_bytes()),
        (Coding::ALaw, _, true) => each(data, out, |[x]| scaled(a_law(x).into(), 15)),
        (Coding::ALaw, _, false) => each(data, out, |[x]| a_law(x).to_le_bytes()),
    }
}

fn each<const FROM: usize, const TO: usize>(
    data: &[u8],
    out: &mut [u8],
    work: impl Fn([u8; FROM]) -> [u8; TO],
) {
    for (from, to) in data.as_chunks::<FROM>().0.iter().zip(out.as_chunks_mut::<TO>().0) {
        *to = work(*from);
    }
}

/// 24 bits with their sign.
fn wide([low, middle, high]: [u8; 3]) -> i32 {
    i32::from_le_bytes([0, low, middle, high]) >> 8
}

#[cfg(test)]
mod tests {
    use forebay_core::{ErrorKind, View};

    use super::*;

    fn chunk(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
        let pad = vec![0; data.len() % 2];
        [&name[..], &(data.len() as u32).to_le_bytes(), data, &pad].concat()
    }

    fn format(code: u16, channels: u16, bits: u16) -> Vec<u8> {
        let frame = bits.div_ceil(8) * channels;
        let rate = 8000_u32;
        let bytes = rate * u32::from(frame);
        let parts =
            [&code.to_le_bytes()[..], &channels.to_le_bytes(), &rate.to_le_bytes(), &bytes.to_le_bytes()];
        [&parts.concat()[..], &frame.to_le_bytes(), &bits.to_le_bytes()].concat()
    }

    fn riff(chunks: &[Vec<u8>]) -> Vec<u8> {
        let body = [&b"WAVE"[..], &chunks.concat()].concat();
        [&b"RIFF"[..], &(body.len() as u32).to_le_bytes(), &body].concat()
    }

    fn wav(code: u16, channels: u16, bits: u16, data: &[u8]) -> Vec<u8> {
        riff(&[chunk(b"LIST", b"odd"), chunk(b"fmt ", &format(code, channels, bits)), chunk(b"data", data)])
    }

    fn read(file: Vec<u8>, dtype: DType) -> Result<(DType, Vec<i64>, Vec<u8>)> {
        let value = parse_wav(&file.into(), dtype)?;
        let View::Struct(sound) = value.view() else { panic!("no struct") };
        assert_eq!(sound.get("rate"), Some(&8000_i64.into()));
        let samples = sound.get("samples").and_then(Value::as_tensor).unwrap();
        Ok((samples.dtype(), samples.shape().to_vec(), samples.data().to_vec()))
    }

    fn floats(file: Vec<u8>) -> Vec<f32> {
        let (_, _, data) = read(file, DType::F32).unwrap();
        data.as_chunks::<4>().0.iter().map(|x| f32::from_le_bytes(*x)).collect()
    }

    /// Code, bits, data; and the type, bytes and floats that they give.
    type Case<'a> = (u16, u16, &'a [u8], DType, Vec<u8>, &'a [f32]);

    #[test]
    fn every_coding_keeps_its_values() {
        let i32s = |values: &[i32]| values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>();
        let cases: [Case; 8] = [
            (1, 8, &[0, 128, 192], DType::U8, vec![0, 128, 192], &[-1.0, 0.0, 0.5]),
            (1, 16, &[0, 128, 0, 64], DType::I16, vec![0, 128, 0, 64], &[-1.0, 0.5]),
            (
                1,
                24,
                &[0, 0, 128, 255, 255, 255, 0, 0, 64],
                DType::I32,
                i32s(&[-(1 << 23), -1, 1 << 22]),
                &[-1.0, -1.0 / 8_388_608.0, 0.5],
            ),
            (1, 32, &[0, 0, 0, 128, 0, 0, 0, 64], DType::I32, i32s(&[i32::MIN, 1 << 30]), &[-1.0, 0.5]),
            (3, 32, &0.25_f32.to_le_bytes(), DType::F32, 0.25_f32.to_le_bytes().to_vec(), &[0.25]),
            (3, 64, &0.25_f64.to_le_bytes(), DType::F64, 0.25_f64.to_le_bytes().to_vec(), &[0.25]),
            (
                7,
                8,
                &[0, 255],
                DType::I16,
                [(-32124_i16).to_le_bytes(), [0, 0]].concat(),
                &[-32124.0 / 32768.0, 0.0],
            ),
            (6, 8, &[0xd5], DType::I16, vec![8, 0], &[8.0 / 32768.0]),
        ];
        for (code, bits, data, dtype, expected, scaled) in cases {
            let frames = scaled.len() as i64;
            let found = read(wav(code, 1, bits, data), DType::ANY).unwrap();
            assert_eq!(found, (dtype, vec![frames, 1], expected), "{code} {bits}");
            assert_eq!(floats(wav(code, 1, bits, data)), scaled, "{code} {bits}");
        }
    }

    #[test]
    fn channels_are_the_last_axis_and_the_file_is_shared() {
        let file = Buffer::from(wav(1, 2, 8, &[1, 2, 3, 4]));
        let value = parse_wav(&file, DType::ANY).unwrap();
        let View::Struct(sound) = value.view() else { panic!("no struct") };
        let samples = sound.get("samples").and_then(Value::as_tensor).unwrap();
        assert_eq!((samples.shape(), &**samples.data()), (&[2, 2][..], &[1, 2, 3, 4][..]));
        assert!(samples.data().same_owner(&file));
    }

    #[test]
    fn extensible_long_and_unknown_lengths() {
        let guid = [&[1, 0, 0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71][..]].concat();
        let extensible = [&format(0xfffe, 1, 16)[..], &[22, 0, 12, 0, 4, 0, 0, 0], &guid].concat();
        let value =
            parse_wav(&riff(&[chunk(b"fmt ", &extensible), chunk(b"data", &[1, 2])]).into(), DType::ANY)
                .unwrap();
        let View::Struct(sound) = value.view() else { panic!("no struct") };
        assert_eq!(sound.get("bits"), Some(&12_i64.into()));

        let mut streamed = wav(1, 1, 8, &[1, 2, 3, 4]);
        let len = streamed.len();
        streamed[len - 8..len - 4].fill(255);
        assert_eq!(read(streamed.clone(), DType::ANY).unwrap().2, [1, 2, 3, 4]);

        let sizes = [&0_u64.to_le_bytes()[..], &3_u64.to_le_bytes(), &[0; 12]].concat();
        let mut long =
            riff(&[chunk(b"ds64", &sizes), chunk(b"fmt ", &format(1, 1, 8)), chunk(b"data", &[1, 2, 3, 4])]);
        long[..4].copy_from_slice(b"RF64");
        let len = long.len();
        long[len - 8..len - 4].fill(255);
        assert_eq!(read(long, DType::ANY).unwrap().2, [1, 2, 3]);
    }

    #[test]
    fn refuses_what_it_cannot_read_and_says_where() {
        let kind = |file: Vec<u8>| read(file, DType::ANY).unwrap_err().kind();
        assert_eq!(kind(wav(2, 1, 4, &[0])), ErrorKind::Unsupported);
        assert_eq!(kind(wav(1, 0, 8, &[0])), ErrorKind::Corrupt);
        assert_eq!(kind(wav(3, 1, 16, &[0, 0])), ErrorKind::Corrupt);
        assert_eq!(kind(wav(1, 1, 16, &[0])), ErrorKind::Corrupt);
        assert_eq!(kind(riff(&[chunk(b"data", &[0])])), ErrorKind::Corrupt);
        assert_eq!(read(wav(1, 1, 8, &[0]), DType::F64).unwrap_err().kind(), ErrorKind::Unsupported);
        let limited =
            decode(&wav(1, 1, 8, &[0; 9]).into(), DType::F32, 35, &|len| Ok(BufferMut::zeroed(len)));
        assert_eq!(limited.unwrap_err().kind(), ErrorKind::Limit);
    }

    #[test]
    fn damage_is_an_error_or_a_value() {
        let whole = wav(1, 2, 16, &[1, 2, 3, 4, 5, 6, 7, 8]);
        for len in 0..whole.len() {
            let error = read(whole[..len].to_vec(), DType::ANY).unwrap_err();
            assert!(error.kind() == ErrorKind::Corrupt && error.get("byte").is_some(), "{len}: {error}");
        }
        let mut refused = 0;
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut bytes = whole.clone();
                bytes[at] ^= 1 << bit;
                refused += u32::from(parse_wav(&bytes.into(), DType::F32).is_err());
            }
        }
        assert!(refused > 200, "{refused}");
    }
}
