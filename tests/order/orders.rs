//! The orders that seeds give, written out: whoever changes how a pipe draws changes the runs of everyone who names a seed.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use forebay_loader::Registry;
use forebay_tests::{Setting, builder, line, registry, within_deadline};

/// How many values of an order are written out.
const FIRST: usize = 12;

/// Which run of a graph: its seed, its epoch, and the rank of how many.
type Which = (u64, u64, u32, u32);

/// The first run with seed 7.
const ONE: Which = (7, 0, 0, 1);

/// Graphs, and the first values that they give with seed 7. More than 16,384 samples are permuted without a table.
const ORDERS: &[(&str, &[i64])] = &[
    ("range 100 | shuffle 10", &[0, 4, 11, 2, 8, 6, 9, 3, 17, 5, 12, 10]),
    ("range 100 | shuffle 10 initial=3", &[0, 1, 6, 4, 9, 10, 2, 5, 17, 12, 3, 7]),
    ("range 100 | shuffle 1000", &[9, 48, 95, 19, 78, 66, 8, 28, 87, 49, 22, 37]),
    (
        "range 20000 | shuffle 20000",
        &[1998, 9735, 19408, 4077, 16269, 13909, 1901, 6158, 19112, 10920, 4908, 8480],
    ),
    ("range 40 | window_shuffle 8", &[1, 2, 4, 6, 0, 5, 7, 3, 13, 15, 12, 11]),
    ("range 40 | window_shuffle 100 within='value / 5'", &[4, 0, 3, 2, 1, 7, 9, 6, 8, 5, 10, 14]),
    (
        "range 20000 | window_shuffle 20000",
        &[18859, 4940, 5293, 1559, 6928, 10743, 13267, 1010, 1324, 18971, 11482, 539],
    ),
    ("range 24 | batch 12 | in_batch_shuffle | unbatch", &[5, 6, 2, 11, 1, 8, 9, 4, 3, 10, 7, 0]),
    ("range 40 | batch 4 | shuffle 10 | unbatch", &[0, 1, 2, 3, 16, 17, 18, 19, 28, 29, 30, 31]),
    ("range 100 | random_sampler", &[53, 32, 24, 64, 44, 0, 9, 50, 5, 29, 8, 1]),
    (
        "range 20000 | random_sampler",
        &[1984, 4508, 6442, 13049, 1618, 10820, 3321, 12597, 6990, 15947, 585, 14829],
    ),
    (
        "range 1000000000000 | random_sampler num_samples=12",
        &[
            372819866076,
            540393919553,
            327767962802,
            481609396320,
            40173932762,
            408233070585,
            50070299271,
            655626571335,
            467216665925,
            871599209995,
            569933567455,
            529012549485,
        ],
    ),
    ("range 5 | random_sampler num_samples=12", &[3, 0, 2, 1, 4, 1, 3, 0, 2, 4, 3, 2]),
    ("range 100 | random_sampler replacement=true", &[86, 70, 94, 46, 21, 41, 67, 69, 34, 30, 18, 46]),
    (
        "range 20000 | random_sampler replacement=true",
        &[17209, 14058, 18945, 9286, 4385, 8268, 13527, 13861, 6977, 6116, 3650, 9210],
    ),
    ("range 100 | collect | random_sampler", &[53, 32, 24, 64, 44, 0, 9, 50, 5, 29, 8, 1]),
    (
        "range 8 | weighted_sampler [1, 2, 3, 4, 0, 1, 2, 3] num_samples=12",
        &[5, 2, 3, 1, 2, 0, 1, 7, 2, 0, 7, 6],
    ),
    (
        "range 20000 | weighted_sampler [WEIGHTS]",
        &[14731, 7159, 16471, 3314, 6563, 450, 3800, 13394, 5029, 2246, 12469, 19807],
    ),
    (
        "range 14 | weighted_sampler [1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4] replacement=false num_samples=12",
        &[5, 3, 8, 6, 13, 1, 7, 2, 12, 10, 0, 11],
    ),
    (
        "range 20000 | weighted_sampler [WEIGHTS] replacement=false num_samples=12",
        &[3597, 12502, 2035, 5533, 1606, 4103, 11790, 6050, 14554, 4906, 13417, 13374],
    ),
    ("range 100 | distributed_sampler", &[33, 74, 1, 47, 6, 58, 15, 91, 42, 63, 72, 76]),
    (
        "range 20000 | distributed_sampler",
        &[13931, 883, 11129, 180, 17742, 9923, 10850, 7984, 9079, 15143, 1867, 8044],
    ),
    ("range 100 | subset_sampler start=50 shuffle=true", &[92, 97, 71, 62, 86, 52, 82, 64, 94, 63, 87, 88]),
    (
        "range 100 | subset_sampler [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37] shuffle=true",
        &[37, 17, 19, 7, 3, 23, 5, 2, 29, 31, 13, 11],
    ),
    (
        "range 20000 | subset_sampler shuffle=true",
        &[5067, 2579, 14896, 12901, 9010, 19245, 3493, 16503, 5270, 17700, 6776, 13388],
    ),
    ("range @a 30 ; range @b 130 start=100 ; mix <a, b>", &[0, 100, 1, 2, 3, 4, 101, 102, 5, 103, 6, 104]),
    (
        "range @a 30 ; range @b 130 start=100 ; range @c 230 start=200 ; mix <a, b, c> weights=[3, 1, 2]",
        &[0, 100, 1, 2, 3, 4, 200, 101, 5, 102, 6, 201],
    ),
    (
        "range @a 4 ; range @b 102 start=100 ; mix <a, b> stop=cycle_forever",
        &[0, 100, 1, 2, 3, 0, 101, 100, 1, 101, 2, 100],
    ),
    (
        "range @a 4 ; range @b 109 start=100 ; mix <a, b> stop=all_exhausted",
        &[0, 100, 1, 2, 3, 101, 102, 103, 104, 105, 106, 107],
    ),
    ("range 100 | random_split [2, 1, 1] take=1", &[0, 2, 15, 16, 21, 22, 26, 34, 37, 51, 54, 64]),
    ("range 100 | random_split [2, 1, 1] take=1 seed=3", &[1, 2, 6, 9, 11, 12, 15, 25, 27, 29, 33, 37]),
    (
        "range 20 | random_split @s [3, 1] count=2 ; concat <s.1, s>",
        &[7, 11, 13, 17, 18, 19, 0, 1, 2, 3, 4, 5],
    ),
    ("range 100 | subsample 0.3", &[0, 3, 7, 11, 14, 15, 17, 18, 21, 27, 30, 35]),
    ("range 100 | subsample 0.3 seed=3", &[1, 3, 4, 6, 7, 8, 9, 16, 22, 25, 35, 36]),
    ("range 100 | subsample 0.3 epochs=anew", &[2, 4, 6, 9, 11, 18, 25, 29, 33, 36, 38, 44]),
    (
        "range 60 | map 'class=value % 2' | rejection_resample class target=[1, 3]",
        &[1, 2, 3, 5, 7, 8, 9, 11, 13, 15, 16, 17],
    ),
    (
        "range 60 | map 'class=value % 2' | rejection_resample class target=[1, 3] initial=[1, 1]",
        &[0, 1, 2, 3, 5, 7, 8, 9, 11, 13, 15, 16],
    ),
    ("range 60 | filter 'random() < 0.3'", &[3, 4, 10, 11, 12, 15, 16, 25, 33, 34, 37, 39]),
    (
        "range 12 | map 'value=int(random() * 1000000.0)'",
        &[431200, 218510, 136363, 84965, 394563, 52532, 158655, 447085, 539023, 410375, 151511, 348579],
    ),
    (
        "range 12 | map 'value=int(random() * 1000.0) * 1000 + int(random() * 1000.0)'",
        &[431490, 218413, 136197, 84009, 394463, 52938, 158978, 447714, 539714, 410029, 151369, 348758],
    ),
];

/// As those, of samples whose uids are made from others: what is drawn for each of them depends on its uid.
const UIDS: &[(&str, &[i64])] = &[
    (
        "range 4 | repeat 3",
        &[431200, 218510, 136363, 84965, 940908, 234066, 2466, 349116, 465092, 802754, 276611, 888017],
    ),
    (
        "range 4 | repeat_each 3",
        &[431200, 954350, 242545, 218510, 956697, 833924, 136363, 57704, 319350, 84965, 314734, 614401],
    ),
    (
        "range 12 | batch 4 | unbatch",
        &[431200, 427331, 992173, 447575, 394563, 354965, 16421, 43150, 539023, 327500, 108135, 466887],
    ),
    (
        "range 12 | batch 2 | batch 3 | unbatch level=2",
        &[431200, 427331, 680220, 874357, 224258, 11329, 158655, 65043, 685768, 683805, 940123, 465674],
    ),
    (
        "range 3 | flat_map '[1, 2, 3, 4]'",
        &[431200, 308996, 671862, 61216, 218510, 672239, 190656, 952762, 136363, 725117, 937522, 653717],
    ),
    (
        "range @a 4 ; range @b 4 ; range @c 4 ; concat <a, b, c>",
        &[431200, 218510, 136363, 84965, 943884, 942666, 559565, 669949, 686460, 311058, 540129, 979834],
    ),
    (
        "range @a 4 ; range @b 4 ; range @c 4 ; mux <a, b, c>",
        &[431200, 370225, 930131, 218510, 548407, 494183, 136363, 398971, 657973, 84965, 897311, 363914],
    ),
    (
        "range @a 2 ; range @b 3 ; mix <a, b> stop=cycle_forever",
        &[431200, 944980, 218510, 230343, 119068, 327790, 177509, 422352, 802559, 569836, 612152, 628575],
    ),
    (
        "range 2 | random_sampler num_samples=12",
        &[431200, 218510, 241327, 363982, 570296, 305279, 458676, 369593, 587213, 446012, 220028, 928424],
    ),
    (
        "range 3 | random_sampler replacement=true num_samples=12",
        &[640229, 730730, 644189, 446012, 928424, 691237, 272382, 67784, 846708, 433570, 226741, 92178],
    ),
    (
        "range 5 | pad_to_length 12",
        &[431200, 218510, 136363, 84965, 394563, 175950, 724396, 419655, 609148, 816227, 840231, 779806],
    ),
];

/// As those, in other epochs, with another seed, in later passes, under other names, and on one of several ranks.
const RUNS: &[(Which, &str, &[i64])] = &[
    ((7, 1, 0, 1), "range 100 | shuffle 10", &[6, 4, 8, 12, 13, 0, 14, 9, 15, 2, 11, 17]),
    ((8, 0, 0, 1), "range 100 | shuffle 10", &[3, 8, 1, 9, 7, 10, 2, 14, 12, 15, 6, 18]),
    ((7, 1, 0, 1), "range 40 | window_shuffle 8", &[0, 4, 1, 2, 5, 3, 7, 6, 12, 15, 11, 14]),
    ((8, 0, 0, 1), "range 40 | window_shuffle 8", &[0, 2, 5, 7, 3, 6, 4, 1, 13, 14, 9, 15]),
    (
        (7, 1, 0, 1),
        "range 24 | batch 12 | in_batch_shuffle | unbatch",
        &[1, 9, 10, 4, 6, 8, 7, 0, 11, 5, 2, 3],
    ),
    (
        (8, 0, 0, 1),
        "range 24 | batch 12 | in_batch_shuffle | unbatch",
        &[8, 4, 2, 7, 11, 3, 0, 10, 5, 6, 9, 1],
    ),
    ((7, 1, 0, 1), "range 100 | random_sampler", &[52, 37, 57, 0, 51, 78, 66, 77, 10, 61, 5, 72]),
    ((8, 0, 0, 1), "range 100 | random_sampler", &[25, 6, 92, 40, 66, 20, 68, 56, 80, 33, 76, 82]),
    (
        (7, 1, 0, 1),
        "range 20000 | random_sampler",
        &[17452, 6126, 7944, 4547, 5000, 16349, 6202, 4261, 5111, 5535, 11112, 7312],
    ),
    (
        (8, 0, 0, 1),
        "range 20000 | random_sampler",
        &[18702, 8157, 8894, 17294, 4541, 3554, 13565, 19582, 6299, 7751, 7298, 667],
    ),
    (
        (7, 1, 0, 1),
        "range 100 | random_sampler replacement=true",
        &[97, 84, 43, 84, 69, 16, 25, 85, 32, 95, 42, 34],
    ),
    (
        (8, 0, 0, 1),
        "range 100 | random_sampler replacement=true",
        &[13, 87, 61, 82, 77, 48, 68, 51, 50, 69, 4, 68],
    ),
    ((7, 1, 0, 1), "range 100 | subsample 0.3", &[0, 3, 7, 11, 14, 15, 17, 18, 21, 27, 30, 35]),
    ((8, 0, 0, 1), "range 100 | subsample 0.3", &[5, 9, 14, 15, 16, 19, 20, 21, 25, 28, 30, 35]),
    ((7, 1, 0, 1), "range 100 | subsample 0.3 epochs=anew", &[0, 1, 4, 5, 6, 10, 13, 17, 18, 21, 23, 24]),
    ((8, 0, 0, 1), "range 100 | subsample 0.3 epochs=anew", &[0, 6, 8, 9, 12, 19, 20, 29, 30, 35, 38, 40]),
    (
        (7, 1, 0, 1),
        "range @a 30 ; range @b 130 start=100 ; mix <a, b>",
        &[100, 0, 101, 1, 102, 2, 103, 3, 104, 4, 105, 5],
    ),
    (
        (8, 0, 0, 1),
        "range @a 30 ; range @b 130 start=100 ; mix <a, b>",
        &[0, 100, 101, 102, 103, 1, 104, 105, 106, 2, 107, 3],
    ),
    ((7, 1, 0, 1), "range 60 | filter 'random() < 0.3'", &[1, 2, 3, 6, 7, 11, 19, 20, 30, 34, 41, 44]),
    ((8, 0, 0, 1), "range 60 | filter 'random() < 0.3'", &[0, 2, 5, 6, 11, 12, 13, 17, 18, 22, 24, 25]),
    ((7, 0, 0, 3), "range 100 | distributed_sampler", &[33, 47, 15, 63, 5, 13, 82, 18, 71, 34, 48, 60]),
    ((7, 0, 1, 3), "range 100 | distributed_sampler", &[74, 6, 91, 72, 30, 78, 10, 44, 75, 67, 39, 12]),
    ((7, 2, 2, 3), "range 100 | distributed_sampler", &[71, 13, 37, 70, 61, 91, 22, 64, 3, 26, 30, 54]),
    ((7, 0, 1, 3), "range 100 | shuffle 10", &[4, 8, 3, 12, 19, 25, 20, 29, 27, 33, 39, 35]),
    ((7, 0, 1, 3), "range 100 | random_sampler", &[32, 44, 50, 8, 51, 70, 77, 97, 85, 30, 69, 38]),
    ((7, 0, 0, 1), "range 5 | shuffle 5 | repeat 3", &[0, 1, 2, 4, 3, 0, 4, 3, 2, 1, 3, 2]),
    ((7, 0, 0, 1), "range 5 | repeat 3 | shuffle 15", &[1, 1, 2, 2, 3, 3, 0, 1, 4, 3, 4, 4]),
    ((7, 0, 0, 1), "range 100 | shuffle 10 | shuffle 10", &[2, 8, 3, 0, 6, 17, 9, 19, 5, 23, 15, 20]),
    ((7, 0, 0, 1), "range 100 | shuffle @named 10", &[4, 10, 11, 0, 13, 5, 1, 2, 14, 6, 9, 17]),
];

/// The first values that a graph gives, inline.
fn order(graph: &str, (seed, epoch, rank, ranks): Which, registry: &Registry) -> Vec<i64> {
    let graph = line(&graph.replace("WEIGHTS", &["1, 2, 3, 4"; 5000].join(", ")));
    let builder = builder(&graph, Setting::INLINE.seed(seed)).ranks(rank, ranks);
    let mut loader = builder.build(registry).unwrap();
    let samples = loader.epoch(epoch).take(FIRST);
    samples.map(|sample| sample.unwrap().get("value").unwrap().as_i64().unwrap()).collect()
}

/// Fails with the orders of today where any of them is another one.
#[track_caller]
fn check(orders: impl IntoIterator<Item = (Which, String, &'static [i64])>) {
    let registry = registry();
    let mut others = String::new();
    for (which, graph, expected) in orders {
        let found = order(&graph, which, &registry);
        if found.is_empty() || found != expected {
            others += &format!("{which:?} {graph}\n    {found:?}\n");
        }
    }
    assert!(others.is_empty(), "these give another order than they did:\n{others}");
}

/// These orders are part of what a seed promises, on every machine and in every later version: a run that names its seed can be made
/// again. So a change of what draws are keyed by, or of how they are made, must be meant, told in the changelog, and written out here.
#[test]
fn a_seed_gives_the_order_that_it_always_gave() {
    within_deadline(|| check(ORDERS.iter().map(|(graph, expected)| (ONE, (*graph).to_owned(), *expected))));
}

/// The same promise for what is drawn behind pipes that make samples of samples.
#[test]
fn derived_samples_have_the_draws_that_they_always_had() {
    let graph = |graph: &str| format!("{graph} | map 'value=int(random() * 1000000.0)'");
    within_deadline(move || check(UIDS.iter().map(|(text, expected)| (ONE, graph(text), *expected))));
}

/// The same promise for other epochs, seeds, passes, names and ranks.
#[test]
fn every_epoch_pass_and_rank_has_the_order_that_it_always_had() {
    within_deadline(|| {
        check(RUNS.iter().map(|(which, graph, expected)| (*which, (*graph).to_owned(), *expected)));
    });
}

/// The same promise for the random numbers themselves, to the last bit.
#[test]
fn random_numbers_are_what_they_always_were() {
    within_deadline(|| {
        let mut loader =
            builder(&line("range 4 | map 'x=random()'"), Setting::INLINE).build(&registry()).unwrap();
        let samples = loader.epoch(0);
        let numbers = samples.map(|sample| f64::from_bits(sample.unwrap().get("x").unwrap().bits()));
        assert_eq!(
            numbers.collect::<Vec<f64>>(),
            [0.43120002985143024, 0.21851014153922066, 0.13636365625678293, 0.08496518976403633]
        );
    });
}
