//! Casts against what Rust's own conversions, and the definitions of the short floats, give.

use forebay_core::{Buffer, Options, Rng};

use super::*;
use crate::testing::{map, sample, small_host};

fn cast(fields: &[&str]) -> Result<Cast> {
    Cast::new(CastOptions { fields: OneOrMany(fields.iter().map(|&field| field.to_owned()).collect()) })
}

/// `value` as this type, alone and as the second of a tensor's elements.
fn both(value: &Value, to: &str) -> Result<Value> {
    let host = small_host();
    let pipe = cast(&[&format!("x={to}")]).unwrap();
    let one = map(&pipe, &sample(1, &[("x", value.clone())]), &host);
    let from = value.dtype().unwrap();
    let mut data = vec![0; from.size()];
    data.extend(&value.bits().to_ne_bytes()[..from.size()]);
    let tensor = Tensor::new(from, &[2, 1], data.into()).unwrap();
    let two = map(&pipe, &sample(1, &[("x", tensor.into())]), &host);
    match (one, two) {
        (Ok(one), Ok(two)) => {
            let value = one.get("x").unwrap().clone();
            let to = value.dtype().unwrap();
            let tensor = two.get("x").and_then(Value::as_tensor).unwrap();
            assert_eq!((tensor.dtype(), tensor.shape()), (to, &[2, 1][..]));
            let mut wanted = vec![0; to.size()];
            wanted.extend(&value.bits().to_ne_bytes()[..to.size()]);
            assert_eq!(tensor.data()[..], wanted);
            Ok(value)
        }
        (Err(one), Err(two)) => {
            assert_eq!((one.message(), one.get("field")), (two.message(), two.get("field")));
            Err(one)
        }
        (one, two) => panic!("{value:?} to {to}: {one:?} alone, {two:?} in a tensor"),
    }
}

#[test]
fn numbers_that_fit_are_cast() {
    for (value, to, wanted) in [
        (Value::from(200_i64), "u8", Value::from(200_u8)),
        (Value::from(-128_i64), "int8", Value::from(-128_i8)),
        (Value::from(u64::MAX), "f32", Value::from(u64::MAX as f32)),
        (Value::from(i64::MIN), "f64", Value::from(i64::MIN as f64)),
        (Value::from(-0.9), "u8", Value::from(0_u8)),
        (Value::from(-128.9), "i8", Value::from(-128_i8)),
        (Value::from(255.99_f32), "u8", Value::from(255_u8)),
        (Value::from(-9_223_372_036_854_775_808.0), "i64", Value::from(i64::MIN)),
        (Value::from(18_446_744_073_709_549_568.0), "u64", Value::from(18_446_744_073_709_549_568_u64)),
        (Value::from(0.1), "float32", Value::from(0.1_f32)),
        (Value::from(f64::NEG_INFINITY), "f32", Value::from(f32::NEG_INFINITY)),
        (Value::from(true), "i16", Value::from(1_i16)),
        (Value::from(1_u8), "bool", Value::from(true)),
        (Value::from(-0.0), "bool", Value::from(false)),
        (Value::from(7_i32), "i32", Value::from(7_i32)),
        (Value::from(1_i32), "f16", Value::scalar(DType::F16, 0x3c00)),
        (Value::from(65_519.0), "f16", Value::scalar(DType::F16, 0x7bff)),
        (Value::from(-2f64.powi(-25) * 1.5), "f16", Value::scalar(DType::F16, 0x8001)),
        (Value::from(2f64.powi(-25)), "f16", Value::scalar(DType::F16, 0)),
        (Value::from(1.0 / 3.0), "f16", Value::scalar(DType::F16, 0x3555)),
        (Value::from(f64::INFINITY), "bf16", Value::scalar(DType::BF16, 0x7f80)),
        (Value::from(3.0), "bfloat16", Value::scalar(DType::BF16, 0x4040)),
    ] {
        assert_eq!(both(&value, to).unwrap(), wanted, "{value:?} to {to}");
    }
    let nan = both(&f64::NAN.into(), "f16").unwrap();
    assert!(matches!(nan.view(), View::Float(number) if number.is_nan()));
}

#[test]
fn numbers_that_do_not_fit_are_refused_by_field_value_and_types() {
    for (value, to, wanted) in [
        (Value::from(256_i64), "u8", "256 is int64 and does not fit into uint8"),
        (Value::from(-1_i8), "u64", "-1 is int8 and does not fit into uint64"),
        (Value::from(u64::MAX), "i64", "18446744073709551615 is uint64 and does not fit into int64"),
        (Value::from(-1.0), "u8", "-1 is float64 and does not fit into uint8"),
        (
            Value::from(9_223_372_036_854_775_808.0),
            "i64",
            "9223372036854776000 is float64 and does not fit into int64",
        ),
        (Value::from(f32::NAN), "i32", "NaN is float32 and does not fit into int32"),
        (Value::from(f64::INFINITY), "u64", "inf is float64 and does not fit into uint64"),
        (Value::from(65_520_i32), "f16", "65520 is int32 and does not fit into float16"),
        (Value::from(2_u8), "bool", "2 is uint8 and does not fit into bool"),
        (Value::from(0.5), "bool", "0.5 is float64 and does not fit into bool"),
    ] {
        let error = both(&value, to).unwrap_err();
        assert_eq!((error.message(), error.get("field")), (wanted, Some("x")));
    }
    assert!(both(&1e39.into(), "f32").is_err() && both(&3.4e38.into(), "f32").is_ok());
    assert!(both(&3.4e38.into(), "bf16").is_err() && both(&3.38e38.into(), "bf16").is_ok());
}

#[test]
fn short_floats_are_the_nearest_ones_ties_to_even() {
    let number = |dtype, bits: u16| match Value::scalar(dtype, bits.into()).view() {
        View::Float(number) => number,
        other => panic!("{other:?}"),
    };
    let mut rng = Rng::new(5, 0);
    for (dtype, name, infinite) in [(DType::F16, "f16", 0x7c00_u16), (DType::BF16, "bf16", 0x7f80)] {
        for bits in (0..infinite - 1).step_by(37).chain([0, 1, infinite - 2]) {
            let (low, high) = (number(dtype, bits), number(dtype, bits + 1));
            let between = low + (high - low) * rng.f64();
            let near = if between - low < high - between { bits } else { bits + 1 };
            let even = bits + bits % 2;
            for (value, wanted) in
                [(low, bits), (high, bits + 1), (low.midpoint(high), even), (between, near)]
            {
                for (value, wanted) in [(value, wanted), (-value, wanted | 0x8000)] {
                    let found = scalar(Number::Float(value), dtype_of(name).unwrap());
                    assert_eq!(found, Some(wanted.into()), "{value:e} to {name}");
                }
            }
        }
    }
}

#[test]
fn integers_keep_their_value_or_are_refused() {
    let mut rng = Rng::new(6, 0);
    let names = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"];
    for _ in 0..4000 {
        let from = dtype_of(names[rng.below(8) as usize]).unwrap();
        let to = names[rng.below(8) as usize];
        let bits = rng.u64() >> rng.below(64);
        let value = Value::scalar(from, bits);
        let wide = |value: &Value| match value.view() {
            View::Int(number) => i128::from(number),
            View::UInt(number) => i128::from(number),
            other => panic!("{other:?}"),
        };
        let dtype = dtype_of(to).unwrap();
        let least = if dtype.code == 0 { -(1_i128 << (dtype.bits - 1)) } else { 0 };
        let fits = (least..least + (1_i128 << dtype.bits)).contains(&wide(&value));
        match both(&value, to) {
            Ok(found) => assert_eq!((wide(&found), fits), (wide(&value), true), "{value:?} to {to}"),
            Err(error) => assert!(!fits, "{value:?} to {to}: {error}"),
        }
    }
}

#[test]
fn tensors_of_the_type_are_left_as_they_are_and_empty_ones_cast() {
    let host = small_host();
    let data = Buffer::from(vec![1_u8, 2, 3]);
    let tensor = |shape: &[usize], data: &Buffer| Tensor::new(DType::U8, shape, data.clone()).unwrap();
    let input =
        sample(1, &[("x", tensor(&[3], &data).into()), ("y", tensor(&[0, 2], &vec![].into()).into())]);
    let out = map(&cast(&["x=u8", "y=i64"]).unwrap(), &input, &host).unwrap();
    assert_eq!(out.get("x").and_then(Value::as_tensor).unwrap().data().as_ptr(), data.as_ptr());
    let empty = out.get("y").and_then(Value::as_tensor).unwrap();
    assert_eq!((empty.dtype(), empty.shape()), (DType::I64, &[0, 2][..]));
    let large = Tensor::new(DType::U8, &[1 << 18], vec![0; 1 << 18].into()).unwrap();
    let error = map(&cast(&["x=f64"]).unwrap(), &sample(1, &[("x", large.into())]), &host).unwrap_err();
    assert_eq!(error.kind(), forebay_core::ErrorKind::Limit);
}

#[test]
fn refuses_what_does_not_work() {
    let host = small_host();
    let input = sample(1, &[("t", "7".into()), ("n", Value::NULL), ("l", Value::list(vec![1_i64.into()]))]);
    for (field, wanted) in [
        ("t=i64", "found text, expected a number or a tensor"),
        ("n=i64", "found null, expected a number or a tensor"),
        ("l=i64", "found a list, expected a number or a tensor"),
        ("z=i64", "no field called `z`; there are: t, n, l"),
    ] {
        let error = map(&cast(&[field]).unwrap(), &input, &host).unwrap_err();
        assert_eq!((error.message(), error.get("field")), (wanted, Some(&field[..1])));
    }
    for wrong in [&["x"][..], &["x="], &["=u8"], &["x=u9"], &["x=text"], &["x=u8", "x=u8"]] {
        assert_eq!(cast(wrong).unwrap_err().get("option"), Some("fields"), "{wrong:?}");
    }
    let error = cast(&["x=u9"]).unwrap_err();
    let wanted = "no type `u9`; there are: bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64";
    assert_eq!(error.message(), wanted);
    assert_eq!(CastOptions::parse("{}").unwrap_err().get("option"), Some("fields"));
}
