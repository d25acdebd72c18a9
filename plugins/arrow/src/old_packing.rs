//! Messages of Arrow 0.17, which said beside a batch, and not in it, how its buffers are packed.
//!
//! The buffers are packed as they are today. Source: `GetCompressionExperimental` of Arrow's `cpp/src/arrow/ipc/reader.cc`.

use arrow_ipc::{
    BodyCompression, BodyCompressionArgs, BodyCompressionMethod, CompressionType, DictionaryBatch,
    DictionaryBatchArgs, Message, MessageArgs, MessageHeader, RecordBatch, RecordBatchArgs,
};
use flatbuffers::{FlatBufferBuilder, WIPOffset};
use forebay_core::{Error, Result};

/// What the key of the metadata is called.
const KEY: &str = "ARROW:experimental_compression";

/// The message as it is written today; `None` for one that says nothing beside it.
///
/// # Errors
/// `Unsupported` for a codec that Arrow does not have any more.
pub(crate) fn of_today(message: &Message<'_>) -> Result<Option<Vec<u8>>> {
    let mut metadata = message.custom_metadata().into_iter().flatten();
    let Some(old) = metadata.find(|pair| pair.key() == Some(KEY)) else { return Ok(None) };
    let name = old.value().unwrap_or_default();
    let codec = match name.to_ascii_lowercase().as_str() {
        "lz4" => Some(CompressionType::LZ4_FRAME),
        "zstd" => Some(CompressionType::ZSTD),
        "uncompressed" => None,
        _ => return Err(Error::unsupported(format!("a body packed as Arrow 0.17 did, by `{name}`"))),
    };
    let mut builder = FlatBufferBuilder::new();
    let (header_type, header) = if let Some(batch) = message.header_as_record_batch() {
        (MessageHeader::RecordBatch, packed(&mut builder, &batch, codec).as_union_value())
    } else if let Some(batch) = message.header_as_dictionary_batch() {
        let data = batch.data().map(|data| packed(&mut builder, &data, codec));
        let args = DictionaryBatchArgs { id: batch.id(), data, isDelta: batch.isDelta() };
        let header = DictionaryBatch::create(&mut builder, &args);
        (MessageHeader::DictionaryBatch, header.as_union_value())
    } else {
        return Ok(None);
    };
    let args = MessageArgs {
        version: message.version(),
        header_type,
        header: Some(header),
        bodyLength: message.bodyLength(),
        custom_metadata: None,
    };
    let made = Message::create(&mut builder, &args);
    builder.finish(made, None);
    Ok(Some(builder.finished_data().to_vec()))
}

/// The batch, which says how it is packed.
fn packed<'b>(
    builder: &mut FlatBufferBuilder<'b>,
    batch: &RecordBatch<'_>,
    codec: Option<CompressionType>,
) -> WIPOffset<RecordBatch<'b>> {
    let nodes: Vec<_> = batch.nodes().into_iter().flatten().copied().collect();
    let buffers: Vec<_> = batch.buffers().into_iter().flatten().copied().collect();
    let counts: Vec<_> = batch.variadicBufferCounts().into_iter().flatten().collect();
    let nodes = builder.create_vector(&nodes);
    let buffers = builder.create_vector(&buffers);
    let counts = builder.create_vector(&counts);
    let compression = codec.map(|codec| {
        let args = BodyCompressionArgs { codec, method: BodyCompressionMethod::BUFFER };
        BodyCompression::create(builder, &args)
    });
    let args = RecordBatchArgs {
        length: batch.length(),
        nodes: Some(nodes),
        buffers: Some(buffers),
        compression,
        variadicBufferCounts: Some(counts),
    };
    RecordBatch::create(builder, &args)
}

#[cfg(test)]
mod tests {
    use arrow_ipc::{Buffer, FieldNode, KeyValue, KeyValueArgs, root_as_message};
    use forebay_core::ErrorKind;

    use super::*;

    /// A batch, or a dictionary's, with this beside it.
    fn message(dictionary: bool, key: &str, codec: &str) -> Vec<u8> {
        let mut builder = FlatBufferBuilder::new();
        let nodes = builder.create_vector(&[FieldNode::new(5, 1)]);
        let buffers = builder.create_vector(&[Buffer::new(0, 8), Buffer::new(8, 40)]);
        let args = RecordBatchArgs {
            length: 5,
            nodes: Some(nodes),
            buffers: Some(buffers),
            ..RecordBatchArgs::default()
        };
        let data = RecordBatch::create(&mut builder, &args);
        let (header_type, header) = if dictionary {
            let args = DictionaryBatchArgs { id: 3, data: Some(data), isDelta: true };
            let header = DictionaryBatch::create(&mut builder, &args);
            (MessageHeader::DictionaryBatch, header.as_union_value())
        } else {
            (MessageHeader::RecordBatch, data.as_union_value())
        };
        let args =
            KeyValueArgs { key: Some(builder.create_string(key)), value: Some(builder.create_string(codec)) };
        let pair = KeyValue::create(&mut builder, &args);
        let custom_metadata = Some(builder.create_vector(&[pair]));
        let args = MessageArgs {
            header_type,
            header: Some(header),
            bodyLength: 48,
            custom_metadata,
            ..MessageArgs::default()
        };
        let made = Message::create(&mut builder, &args);
        builder.finish(made, None);
        builder.finished_data().to_vec()
    }

    fn made(dictionary: bool, key: &str, codec: &str) -> Result<Option<Vec<u8>>> {
        of_today(&root_as_message(&message(dictionary, key, codec)).unwrap())
    }

    #[test]
    fn what_is_said_beside_a_batch_is_in_it() {
        let codecs = [
            ("LZ4", Some(CompressionType::LZ4_FRAME)),
            ("zstd", Some(CompressionType::ZSTD)),
            ("UNCOMPRESSED", None),
        ];
        for ((name, codec), dictionary) in
            codecs.into_iter().flat_map(|codec| [(codec, false), (codec, true)])
        {
            let bytes = made(dictionary, KEY, name).unwrap().unwrap();
            let today = root_as_message(&bytes).unwrap();
            let batch = if dictionary {
                let header = today.header_as_dictionary_batch().unwrap();
                assert!((header.id(), header.isDelta()) == (3, true));
                header.data().unwrap()
            } else {
                today.header_as_record_batch().unwrap()
            };
            assert_eq!((today.bodyLength(), today.custom_metadata().is_none()), (48, true));
            assert_eq!(batch.compression().map(|packed| packed.codec()), codec, "{name}");
            let nodes: Vec<_> =
                batch.nodes().unwrap().iter().map(|node| (node.length(), node.null_count())).collect();
            let buffers: Vec<_> =
                batch.buffers().unwrap().iter().map(|buffer| (buffer.offset(), buffer.length())).collect();
            assert_eq!((batch.length(), nodes, buffers), (5, vec![(5, 1)], vec![(0, 8), (8, 40)]));
        }
    }

    #[test]
    fn other_codecs_are_refused_and_other_messages_stay() {
        let error = made(false, KEY, "brotli").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.message().contains("`brotli`"), "{error}");
        assert!(made(false, "pandas", "lz4").unwrap().is_none());
    }
}
