//! Arrays of every type and order, and damaged ones.

use forebay_core::{ErrorKind, View};

use super::*;

/// An npy file of version 1.
pub(crate) fn file(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Buffer {
    let header = format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
    let mut file = b"\x93NUMPY\x01\0".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.bytes());
    // The numbers lie on a boundary of their own, as NumPy has it.
    file.extend(data);
    file.into()
}

fn tensor(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> (DType, Vec<i64>, Vec<u8>) {
    let value = parse_npy(&file(descr, fortran, shape, data)).unwrap();
    let tensor = value.as_tensor().unwrap();
    (tensor.dtype(), tensor.shape().to_vec(), tensor.data().to_vec())
}

#[test]
fn numbers_of_every_type_keep_their_bits() {
    let types = [
        ("?", 1, DType::BOOL),
        ("|b1", 1, DType::BOOL),
        ("|i1", 1, DType::I8),
        ("<i2", 2, DType::I16),
        ("<i4", 4, DType::I32),
        ("<i8", 8, DType::I64),
        ("|u1", 1, DType::U8),
        ("<u2", 2, DType::U16),
        ("<u4", 4, DType::U32),
        ("<u8", 8, DType::U64),
        ("<f2", 2, DType::F16),
        ("<f4", 4, DType::F32),
        ("<f8", 8, DType::F64),
        ("<M8[ns]", 8, DType::I64),
        ("<m8[D]", 8, DType::I64),
    ];
    for (code, size, dtype) in types {
        let data: Vec<u8> = (0..size * 6).map(|at| at as u8 % 2).collect();
        let read = tensor(&format!("'{code}'"), "False", "(2, 3)", &data);
        assert_eq!(read, (dtype, vec![2, 3], data.clone()), "{code}");
        if size > 1 {
            let mut turned = data.clone();
            swap(&mut turned, size);
            let read = tensor(&format!("'{}'", code.replace('<', ">")), "False", "(2, 3)", &turned);
            assert_eq!(read, (dtype, vec![2, 3], data), "{code}, big");
        }
    }
    assert_eq!(tensor("'<i2'", "False", "()", &[7, 1]), (DType::I16, vec![], vec![7, 1]));
    assert_eq!(tensor("'<i2'", "False", "(3, 0)", &[]), (DType::I16, vec![3, 0], vec![]));
    assert_eq!(tensor("'|V3'", "False", "(1,)", &[1, 2, 3]), (DType::U8, vec![1, 3], vec![1, 2, 3]));
}

#[test]
fn complex_numbers_have_an_axis_more_and_swap_by_parts() {
    let parts: Vec<u8> = [1.5_f32, -2.0].iter().flat_map(|part| part.to_be_bytes()).collect();
    let expected: Vec<u8> = [1.5_f32, -2.0].iter().flat_map(|part| part.to_le_bytes()).collect();
    assert_eq!(tensor("'>c8'", "False", "(1,)", &parts), (DType::F32, vec![1, 2], expected));
    assert_eq!(tensor("'<c16'", "False", "()", &[0; 16]), (DType::F64, vec![2], vec![0; 16]));
}

#[test]
fn fortran_order_is_turned() {
    // Columns of a 2 by 3 matrix 0..6.
    assert_eq!(tensor("'|u1'", "True", "(2, 3)", &[0, 3, 1, 4, 2, 5]).2, [0, 1, 2, 3, 4, 5]);
    let (_, shape, data) = tensor("'>u2'", "True", "(2, 1, 2)", &[0, 0, 0, 2, 0, 1, 0, 3]);
    assert_eq!((shape, data), (vec![2, 1, 2], vec![0, 0, 1, 0, 2, 0, 3, 0]));
}

#[test]
fn structured_arrays_are_structs_of_their_fields() {
    let descr = "[('a', '<i2'), ('', '|V1'), (('title', 'b'), [('c', '|u1', (2,)), ('d', '|S2')])]";
    let item = |base: u8| [base, 0, 9, base + 1, base + 2, b'x', 0];
    let data = [item(1), item(11)].concat();
    let value = parse_npy(&file(descr, "False", "(2,)", &data)).unwrap();
    let View::Struct(fields) = value.view() else { panic!("no struct") };
    assert_eq!(fields.schema().names().len(), 2);
    let View::Struct(inner) = fields.get("b").unwrap().view() else { panic!("no struct") };
    let a = fields.get("a").and_then(Value::as_tensor).unwrap();
    let c = inner.get("c").and_then(Value::as_tensor).unwrap();
    assert_eq!((a.shape(), &**a.data()), (&[2][..], &[1, 0, 11, 0][..]));
    assert_eq!((c.shape(), &**c.data()), (&[2, 2][..], &[2, 3, 12, 13][..]));
    let x = Value::from(Buffer::from(b"x".to_vec()));
    assert_eq!(inner.get("d").unwrap(), &Value::list(vec![x.clone(), x]));
}

#[test]
fn strings_are_lists_without_the_zeros_at_their_ends() {
    let utf32 = |text: &str| text.chars().flat_map(|c| u32::from(c).to_be_bytes()).collect::<Vec<_>>();
    let value = parse_npy(&file("'>U2'", "True", "(2, 2)", &utf32("aübc\0\0d\0"))).unwrap();
    let list = |one: &str, two: &str| Value::list(vec![one.into(), two.into()]);
    assert_eq!(value, Value::list(vec![list("aü", ""), list("bc", "d")]));
    assert_eq!(
        parse_npy(&file("'|S3'", "False", "()", b"csr")).unwrap().as_bytes().unwrap(),
        &b"csr".to_vec().into()
    );
    let error = parse_npy(&file("'<U1'", "False", "(1,)", &[0, 0xd8, 0, 0])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
}

#[test]
fn shares_the_memory_of_the_file_where_it_can() {
    let bytes = file("'|u1'", "False", "(4,)", &[1, 2, 3, 4]);
    let value = parse_npy(&bytes).unwrap();
    assert!(value.as_tensor().unwrap().data().same_owner(&bytes));
}

#[test]
fn refuses_objects_long_doubles_and_nonsense() {
    let cases = [
        ("'|O'", "()", ErrorKind::Unsupported),
        ("'<f16'", "()", ErrorKind::Unsupported),
        ("[('a', 'O')]", "()", ErrorKind::Unsupported),
        ("'<q9'", "()", ErrorKind::Corrupt),
        ("'<i3'", "()", ErrorKind::Corrupt),
        ("''", "()", ErrorKind::Corrupt),
        ("'ü4'", "()", ErrorKind::Corrupt),
        ("7", "()", ErrorKind::Corrupt),
        ("[('a', 'b1'), ('a', 'b1')]", "()", ErrorKind::Corrupt),
        ("'|S0'", "(4000000000,)", ErrorKind::Limit),
        ("'|S0'", "(1000, 1000, 1000, 0)", ErrorKind::Limit),
        ("'|u1'", "(18446744073709551615, 0)", ErrorKind::Corrupt),
        ("'|u1'", "3", ErrorKind::Corrupt),
        ("'|u1'", "(1,1,1,1,1,1,1,1,0)", ErrorKind::Unsupported),
        ("'<U999999999999'", "()", ErrorKind::Corrupt),
        ("[('a', 'u1', (9000000000000000000, 4, 0))]", "()", ErrorKind::Limit),
    ];
    for (descr, shape, kind) in cases {
        let error = parse_npy(&file(descr, "False", shape, &[])).unwrap_err();
        assert_eq!(error.kind(), kind, "{descr} {shape}: {error}");
    }
    let error = parse_npy(&file("'|b1'", "False", "(2,)", &[1, 2])).unwrap_err();
    assert_eq!((error.kind(), error.get("element")), (ErrorKind::Corrupt, Some("1")));
}

#[test]
fn damage_is_an_error_or_a_value() {
    let descr = "[('a', '>f4', (2,)), ('b', '<U2')]";
    let whole = file(descr, "True", "(2, 1)", &[0; 32]);
    assert!(parse_npy(&whole).is_ok());
    for len in 0..whole.len() {
        let error = parse_npy(&whole.slice(..len)).unwrap_err();
        assert!(error.kind() == ErrorKind::Corrupt && error.get("byte").is_some(), "{len}: {error}");
    }
    let mut refused = 0;
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut bytes = whole.to_vec();
            bytes[at] ^= 1 << bit;
            refused += u32::from(parse_npy(&bytes.into()).is_err());
        }
    }
    assert!(refused > 300, "{refused}");
}
