//! Expressions against what the language says they give.

use forebay_core::{DType, Key, Result, Rng, Sample, Tensor, TensorExt as _, Value, View, write_json};

use super::{Draws, Expression, quick::Quick};
use crate::testing::{sample, small_host};

fn birds() -> Sample {
    let boxes = Value::list(vec![3_i64.into(), 4_i64.into(), 5_i64.into()]);
    let meta = Value::structure(vec![("lang".into(), "de".into()), ("score".into(), 0.5.into())]);
    let image = Tensor::new(DType::U8, &[2, 3, 1], vec![7_u8; 6].into()).unwrap();
    let row = Tensor::new(DType::I32, &[3], [1_i32, -2, 3].map(i32::to_ne_bytes).concat().into()).unwrap();
    sample(
        9,
        &[
            ("label", 3_i64.into()),
            ("count", u64::MAX.into()),
            ("weight", 0.25_f32.into()),
            ("text", "Über Höhen".into()),
            ("caption", "A heron".into()),
            ("seg.png", 12_i64.into()),
            ("with space", 13_i64.into()),
            ("boxes", boxes),
            ("meta", meta),
            ("image", image.into()),
            ("row", row.into()),
            ("one", Tensor::new(DType::U8, &[], vec![9].into()).unwrap().into()),
            ("nothing", Value::NULL),
            ("yes", true.into()),
            ("raw", Value::from(forebay_core::Buffer::from(vec![1_u8, 2]))),
        ],
    )
}

fn value(text: &str) -> Result<Value> {
    let sample = birds();
    let expression = Expression::new(text)?;
    let places = expression.places(sample.schema());
    let host = small_host();
    let cx = host.context();
    let draws = Draws::new(&cx, sample.uid());
    expression.value(&places, &Key::whole("a.tar"), sample.schema(), sample.values(), &draws)
}

#[track_caller]
fn gives(text: &str, wanted: &str) {
    let value = value(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let mut json = Vec::new();
    write_json(&value, &mut json).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(String::from_utf8(json).unwrap(), wanted, "{text}");
}

#[track_caller]
fn fails(text: &str, wanted: &str) {
    let error = value(text).unwrap_err().to_string();
    assert!(error.contains(wanted) && error.contains(text), "{text}: {error}");
}

#[test]
fn numbers() {
    gives("label + 2 * 3 - 1", "8");
    gives("-label", "-3");
    gives("7 / 2", "3");
    gives("-7 / 2", "-3");
    gives("-7 % 3", "-1");
    gives("7.0 / 2", "3.5");
    gives("label * weight", "0.75");
    gives("count - 1u", "18446744073709551614");
    gives("count / 2u", "9223372036854775807");
    gives("9223372036854775807 + 1", "9223372036854775808");
    gives("abs(-3) + int('40') + int(2.9)", "45");
    gives("min(3, 1.5, 2u)", "1.5");
    gives("min(7)", "7");
    gives("round(2.5) + floor(-0.5) + ceil(0.5)", "3.0");
    gives("sqrt(double(boxes[1]))", "2.0");
    gives("double('1e3')", "1000.0");
    gives("uint(3.0)", "3");
    fails("count * 2", "beyond 64 bits");
    fails("count * count", "beyond 64 bits");
    fails("1 / 0", "divided by zero");
    fails("1 % 0", "divided by zero");
    fails("text + 1", "`+` takes two numbers, found text and an integer");
    fails("int('x')", "`x` is no integer");
    fails("int(1e300)", "is no int64");
    fails("uint(-1)", "is no uint64");
    fails("int(0.0 / 0.0)", "NaN");
}

#[test]
fn comparisons_are_exact_across_types() {
    for truth in [
        "label == 3.0",
        "label < 3.5 && label > 2.5",
        "count > 9223372036854775807",
        "count != 18446744073709551616.0",
        "count < 18446744073709551616.0",
        "9007199254740993 > 9007199254740992.0",
        "-1 < count",
        "0.0 / 0.0 != 0.0 / 0.0",
        "!(0.0 / 0.0 < 1.0) && !(0.0 / 0.0 >= 1.0)",
        "label != '3'",
        "nothing == null && label != null",
        "'a' < 'b' && b'a' < b'b' && false < true",
        "boxes == [3, 4.0, 5u]",
        "meta == {'score': 0.5, 'lang': 'de'}",
        "meta != {'score': 0.5}",
        "4 in boxes && !(6 in boxes) && 'lang' in meta && -2 in row",
        "raw == b'\\x01\\x02'",
    ] {
        gives(truth, "true");
    }
    fails("label < 'a'", "an integer cannot be compared with text");
    fails("boxes < boxes", "a list cannot be compared with a list");
    fails("3 in label", "found an integer");
}

#[test]
fn logic_absorbs_errors_of_the_side_that_does_not_matter() {
    gives("yes && label == 3", "true");
    gives("false && nowhere", "false");
    gives("nowhere && false", "false");
    gives("nowhere || true", "true");
    gives("yes ? 'a' : nowhere", "\"a\"");
    gives("!yes ? nowhere : 'b'", "\"b\"");
    fails("nowhere && true", "no field called `nowhere`; there are: label, count");
    fails("label && true", "expected true or false, found an integer");
    fails("label ? 1 : 2", "expected true or false, found an integer");
}

#[test]
fn fields_and_what_is_in_them() {
    gives("seg.png", "12");
    gives("sample['with space'] + sample.label", "16");
    gives("meta.lang", "\"de\"");
    gives("meta['score']", "0.5");
    gives("boxes[2]", "5");
    gives("row[1]", "-2");
    gives("size(text) + size(boxes) + size(meta) + size(image) + size(raw)", "19");
    gives("text.size()", "10");
    gives("shape(image)", "[2,3,1]");
    gives("type(label) + type(meta) + type(image)", "\"intstructtensor\"");
    gives("has(meta.lang) && !has(meta.other) && has(sample.text) && !has(sample.nowhere)", "true");
    gives("key()", "\"a.tar\"");
    gives("origin()", "\"a.tar\"");
    gives("nothing", "null");
    gives("{'area': label * 2, 'text': caption}", "{\"area\":6,\"text\":\"A heron\"}");
    fails("meta.other", "no `other` in a struct of: lang, score");
    fails("label.other", "`.other` of an integer, expected a struct");
    fails("boxes[3]", "no item 3 in a list of 3");
    fails("boxes[-1]", "no item -1 in a list of 3");
    fails("image[2]", "no item 2 in a list of 2");
    fails("one[0]", "a tensor has no item at an integer");
    fails("size(label)", "`size` does not take an integer");
}

#[test]
fn text() {
    gives("text.startsWith('Ü') && text.endsWith('en') && text.contains(' H')", "true");
    gives("caption.matches('^A h.*n$') && !caption.matches('^b')", "true");
    gives("caption.lowerAscii() + '!'", "\"a heron!\"");
    gives("' x '.trim() + caption.substring(2, 5)", "\"xher\"");
    gives("caption.split(' ')", "[\"A\",\"heron\"]");
    gives("['a', 'b'].join('-').replace('-', '+')", "\"a+b\"");
    gives("string(label) + string(1.5) + string(true) + string(b'x')", "\"31.5truex\"");
    gives("bool('true')", "true");
    fails("caption.substring(2, 99)", "no characters 2 to 99 in a text of 7");
    fails("bool('x')", "neither");
    gives("head(b'abc', 2) == b'ab' && head(b'abc', 9) == b'abc' && size(head(raw, 1)) == 1", "true");
    fails("head(raw, -1)", "the first -1 bytes; expected 0 or more");
    fails("head(text, 1)", "`head` does not take text and an integer");
    fails("label.matches('x')", "`matches` takes text, found an integer");
}

#[test]
fn macros() {
    gives("boxes.all(x, x > 2) && !boxes.all(x, x > 3)", "true");
    gives("boxes.exists(x, x == 4) && !boxes.exists(x, x == 6)", "true");
    gives("boxes.exists_one(x, x == 4) && !boxes.exists_one(x, x > 3)", "true");
    gives("boxes.map(x, x * label)", "[9,12,15]");
    gives("boxes.filter(x, x != 4)", "[3,5]");
    gives("boxes.map(x, x > 3, x + 1)", "[5,6]");
    gives("boxes.map(x, row.map(y, x * y))", "[[3,-6,9],[4,-8,12],[5,-10,15]]");
    gives("boxes.map(x, boxes.filter(y, y < x).size())", "[0,1,2]");
    gives("meta.filter(name, meta[name] == 'de')", "[\"lang\"]");
    gives("[].all(x, false)", "true");
    gives("boxes + [6] == [3, 4, 5, 6]", "true");
    fails("label.all(x, true)", "a macro goes over a list, found an integer");
    fails("boxes.map(x, x.y)", "`.y` of an integer");
}

#[test]
fn what_cannot_run_is_refused_when_it_is_read() {
    for (text, wanted) in [
        ("label <", "is no expression"),
        ("", "is no expression"),
        ("label = 3", "is no expression"),
        ("nosuch(label)", "no function `nosuch`; there are: matches, key, origin, random, size"),
        ("size(label, 2)", "`size` takes 1 values"),
        ("text.matches(caption)", "a text that stands there"),
        ("text.matches('(')", "unclosed group"),
        ("Bird{name: 1}", "no message types"),
        ("{1: 2}", "texts that stand there"),
        ("{'a': 1, 'a': 2}", "stands twice"),
    ] {
        let error = Expression::new(text).unwrap_err().to_string();
        assert!(error.contains(wanted), "{text}: {error}");
    }
}

#[test]
fn long_and_deep_ones_are_refused_before_they_overflow() {
    let deep = |count| format!("{}a{}", "(".repeat(count), ")".repeat(count));
    let long = |count| vec!["a"; count].join("+");
    let within = |count| format!("{}a{}", "-(".repeat(count), ")".repeat(count));
    for text in [deep(2047), deep(90_000), long(2048), long(90_000), within(1365)] {
        assert!(Expression::new(&text).is_err(), "{} bytes", text.len());
    }
    assert!(value(&vec!["1"; 100].join("+")).unwrap().as_i64() == Some(100));
}

#[test]
fn a_field_as_it_is_shares_its_memory() {
    let sample = birds();
    let expression = Expression::new("image").unwrap();
    let places = expression.places(sample.schema());
    let host = small_host();
    let cx = host.context();
    let draws = Draws::new(&cx, sample.uid());
    let found = expression.value(&places, sample.key(), sample.schema(), sample.values(), &draws).unwrap();
    let data = |value: &Value| value.as_tensor().unwrap().data().as_ptr();
    assert_eq!(data(&found), data(sample.get("image").unwrap()));
}

/// A sample with a tensor `x` of each type that holds these numbers, and a list of them.
fn of_every_type(numbers: &[i8]) -> Vec<(DType, Value, Value)> {
    use forebay_core::Options as _;
    let list = Value::list(numbers.iter().map(|&number| number.into()).collect());
    let bytes: Vec<u8> = numbers.iter().map(|number| number.cast_unsigned()).collect();
    let tensor = Value::from(Tensor::new(DType::I8, &[numbers.len()], bytes.into()).unwrap());
    let types = DType::NAMED.iter().filter(|(dtype, _)| *dtype != DType::BOOL);
    let types = types.filter(|(dtype, _)| dtype.code != DType::U8.code || numbers.iter().all(|&n| n >= 0));
    types
        .map(|&(dtype, name)| {
            let options = crate::CastOptions::parse(&format!(r#"{{"fields": "x={name}"}}"#)).unwrap();
            let cast = <crate::Cast as forebay_core::DataPipe>::new(options).unwrap();
            let input = sample(1, &[("x", tensor.clone())]);
            let out = crate::testing::map(&cast, &input, &small_host()).unwrap();
            (dtype, out.get("x").unwrap().clone(), list.clone())
        })
        .collect()
}

fn of(text: &str, x: &Value) -> Result<Value> {
    let sample = sample(9, &[("x", x.clone())]);
    let expression = Expression::new(text)?;
    let places = expression.places(sample.schema());
    expression.value(&places, sample.key(), sample.schema(), sample.values(), &Draws::none())
}

#[test]
fn numbers_of_every_type_come_to_one() {
    for numbers in [&[3, 9, 9, 4, 0, 0, 7, 1, 5, 11, 2][..], &[-128, 127, 3], &[6]] {
        let wide: Vec<f64> = numbers.iter().copied().map(f64::from).collect();
        let count = wide.len() as f64;
        let total: f64 = wide.iter().sum();
        let spread = wide.iter().map(|number| (number - total / count).powi(2)).sum::<f64>() / count;
        let place = |best: i8| numbers.iter().position(|&number| number == best).unwrap() as f64;
        let (least, greatest) = (*numbers.iter().min().unwrap(), *numbers.iter().max().unwrap());
        for (dtype, tensor, list) in of_every_type(numbers) {
            for (function, wanted) in [
                ("sum", total),
                ("mean", total / count),
                ("std", spread.sqrt()),
                ("min", least.into()),
                ("max", greatest.into()),
                ("argmin", place(least)),
                ("argmax", place(greatest)),
            ] {
                let text = format!("{function}(x)");
                let is_float = [DType::F16.code, DType::BF16.code].contains(&dtype.code);
                for (x, float) in [(&tensor, is_float), (&list, false)] {
                    let found = of(&text, x).unwrap();
                    let number = match found.view() {
                        View::Int(number) => number as f64,
                        View::UInt(number) => number as f64,
                        View::Float(number) => number,
                        _ => panic!("{found:?}"),
                    };
                    assert_eq!(number, wanted, "{text} of {dtype} {numbers:?}");
                    let float = match function {
                        "mean" | "std" => true,
                        "argmin" | "argmax" => false,
                        _ => float,
                    };
                    assert_eq!(matches!(found.view(), View::Float(_)), float, "{text} of {dtype}: {found:?}");
                }
            }
        }
    }
}

#[test]
fn integers_are_summed_up_exactly_and_floats_with_all_their_bits() {
    let big = |numbers: &[u64]| {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
        Value::from(Tensor::new(DType::U64, &[numbers.len()], bytes.into()).unwrap())
    };
    assert_eq!(of("sum(x)", &big(&[u64::MAX - 1, 1])).unwrap(), Value::from(u64::MAX));
    let error = of("sum(x)", &big(&[u64::MAX, 1])).unwrap_err().to_string();
    assert!(error.contains("18446744073709551616 is beyond 64 bits") && error.contains("sum(x)"), "{error}");
    assert_eq!(of("mean(x)", &big(&[u64::MAX; 4])).unwrap(), Value::from(u64::MAX as f64));
    let far =
        Value::list(vec![i64::MIN.into(), i64::MIN.into(), i64::MAX.into(), i64::MAX.into(), 1_u8.into()]);
    assert_eq!(of("sum(x)", &far).unwrap(), Value::from(-1_i64));
    let mixed =
        Value::list(vec![9_007_199_254_740_993_i64.into(), 0.5.into(), (-9_007_199_254_740_993_i64).into()]);
    assert_eq!(of("sum(x)", &mixed).unwrap(), Value::from(0.5));
    // More than are looked at together, and no whole number of the lanes.
    let count = 300_007_usize;
    let bytes: Vec<u8> = (0..count).flat_map(|at| (at as f32 * 0.1).to_ne_bytes()).collect();
    let long = Value::from(Tensor::new(DType::F32, &[count], bytes.into()).unwrap());
    let exact: f64 = (0..count).map(|at| f64::from(at as f32 * 0.1)).sum();
    let near = of("sum(x) / 1.0", &long).unwrap();
    assert!(
        matches!(near.view(), View::Float(found) if (found / exact - 1.0).abs() < 1e-13),
        "{near:?} {exact}"
    );
    let bytes: Vec<u8> = (0..count).flat_map(|at| (at as u32 * 14_000).to_ne_bytes()).collect();
    let long = Value::from(Tensor::new(DType::U32, &[count], bytes.into()).unwrap());
    let exact: u64 = (0..count as u64).map(|at| at * 14_000).sum();
    assert_eq!(of("sum(x)", &long).unwrap().as_i64(), Some(exact as i64));
    assert_eq!(of("argmax(x)", &long).unwrap().as_i64(), Some(count as i64 - 1));
}

#[test]
fn what_numbers_come_to() {
    gives("sum(boxes)", "12");
    gives("mean(boxes)", "4.0");
    gives("std([1, 5])", "2.0");
    gives("max(boxes)", "5");
    gives("sum(image) + max(image)", "49");
    gives("sum(1, 2.5, 3u)", "6.5");
    gives("mean(label, 4)", "3.5");
    gives("sum(one)", "9");
    gives("sum(label)", "3");
    // Truth values in lists and tensors.
    gives("sum([true, false, true])", "2");
    gives("sum(boxes.map(b, b > 3)) * 1.0 / size(boxes)", "0.6666666666666666");
    gives("max([false, true])", "true");
    gives("sum(0, int(mean([true, false]) * 4))", "2");
    // NaN shows, wherever it stands.
    gives(
        "string(max([1, 0.0 / 0.0, 3])) + string(min([0.0 / 0.0, 3])) + string(sum([1, 0.0 / 0.0]))",
        "\"NaNNaNNaN\"",
    );
    gives("argmin([3, 0.0 / 0.0, 1, 0.0 / 0.0])", "1");
    gives("argmax([2, 9, 9])", "1");
    gives("sum([])", "0");
    for function in ["mean", "std", "min", "max", "argmin", "argmax"] {
        fails(&format!("{function}([])"), "no number in an empty list");
    }
    fails("sum()", "`sum` takes 1 values");
    fails("sum(text)", "`sum` does not take text");
    fails("mean(['a'])", "`mean` does not take a list");
    fails("max(true, 1)", "`max` does not take a truth value and an integer");
    fails("sum([[1], [2]])", "`sum` does not take a list");
}

#[test]
fn rows_of_tensors_are_items() {
    gives("size(image[1]) + image[1][2][0]", "10");
    gives("shape(image[0])", "[3,1]");
    gives("image.map(row, sum(row))", "[21,21]");
    gives("image.all(row, row == image[0]) && image[0] in image && image[0] != image[0][0]", "true");
    gives("type(image[0])", "\"tensor\"");
    fails("image[0] + 1", "`+` takes two numbers, found a tensor and an integer");
    let row = value("image[1]").unwrap();
    let tensor = row.as_tensor().unwrap();
    assert_eq!((tensor.dtype(), tensor.shape(), &tensor.data()[..]), (DType::U8, &[3, 1][..], &[7; 3][..]));
}

/// A random expression over numbers and truth values, some of which do not go together.
fn random_expression(rng: &mut Rng, depth: u32) -> String {
    let leaves = [
        "a",
        "b",
        "c",
        "d",
        "e",
        "yes",
        "no",
        "text",
        "nowhere",
        "3",
        "-1",
        "0",
        "2u",
        "2.5",
        "true",
        "false",
        "'x'",
        "9223372036854775807",
    ];
    let operators = ["+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "&&", "||"];
    let one_of = |rng: &mut Rng, list: &[&str]| list[rng.below(list.len() as u64) as usize].to_owned();
    if depth == 0 || rng.bool(0.2) {
        return one_of(rng, &leaves);
    }
    let part = |rng: &mut Rng| random_expression(rng, depth - 1);
    match rng.below(8) {
        0 => format!("!({})", part(rng)),
        1 => format!("-({})", part(rng)),
        2 => format!("({} ? {} : {})", part(rng), part(rng), part(rng)),
        _ => {
            let (left, right) = (part(rng), part(rng));
            format!("({left} {} {right})", one_of(rng, &operators))
        }
    }
}

#[test]
fn the_short_way_gives_what_the_long_way_gives() {
    let mut rng = Rng::new(3, 1);
    let host = small_host();
    let cx = host.context();
    let draws = Draws::new(&cx, 1);
    let (mut short, mut none) = (0, 0);
    for _ in 0..20_000 {
        let text = random_expression(&mut rng, 3);
        let mut expression = Expression::new(&text).unwrap();
        let whole = [0, 1, -1, 3, i64::MIN, i64::MAX][rng.below(6) as usize];
        let natural = [0, 1, 7, u64::MAX][rng.below(4) as usize];
        let float = [0.0, -0.0, 1.5, f64::NAN, f64::INFINITY, 1e19][rng.below(6) as usize];
        let fields = [
            ("a", whole.into()),
            ("b", Value::from(rng.u32() as i8)),
            ("c", natural.into()),
            ("d", float.into()),
            ("e", Value::from(rng.u32() as u8)),
            ("yes", true.into()),
            ("no", false.into()),
            ("text", "x".into()),
        ];
        let sample = sample(1, &fields);
        let (key, schema, values) = (sample.key(), sample.schema(), sample.values());
        let places = expression.places(schema);
        let quick = expression.quick(&places, values, &draws);
        expression.quick = false;
        let long = expression.value(&places, key, schema, values, &draws);
        match quick {
            Some(quick) => assert_eq!(quick.into_value(), long.unwrap(), "{text} of {sample:?}"),
            None => none += 1,
        }
        let holds = expression.holds(&places, key, schema, values, &draws);
        assert!(quick.and_then(Quick::truth).is_none_or(|truth| holds == Ok(truth)), "{text}");
        short += usize::from(quick.is_some());
    }
    assert!(short > 2000 && none > 2000, "{short} the short way, {none} not");
}
