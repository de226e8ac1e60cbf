//! Known answers: the bits of the named recipes, fixed for ever. If one of these fails, signatures that people have stored
//! no longer match new ones: a better recipe gets a new name (or a new version), these stay.

use lookalike::{
    Document, Media, Recipe, Signer,
    features::{
        Buffers, Extractor,
        counts::Counts,
        hash::{FeatureHash, HashFunction},
        passages::Passages,
        terms::{TermCollector, TermCounts, TermStatistics},
        weights::Weight,
    },
    recipe::{Scratch, SignatureKind},
};

const ENGLISH: &str = include_str!("../examples/stories/harbour.txt");
const EDITED: &str = include_str!("../examples/stories/harbour-later.txt");
const MANY_SCRIPTS: &str = "Straße CAFÉ naïve ﬁn — 近似重複検出のためのテスト。 Привет, мир! ภาษาไทย مرحبا بالعالم 한국어 문서 1,234.5 can't";
const HTML: &str = "<html><head><title>Harbour</title><style>b{}</style></head><body><p>The &eacute;tude of \
    <b>harbour</b>s reopened<br>on Monday morning after two days of wind</p><script>x()</script></body></html>";
const CODE: &str = "fn main() { let Total = items.iter().map(|x| x.price_cents).sum::<u64>(); println!(\"{Total}\"); }";

fn signature(recipe: &Recipe, text: &str) -> String {
    let signer = Signer::new(recipe.clone(), None).unwrap();
    signer.sign_text(text, &mut Scratch::default()).unwrap().signature.to_string()
}

fn named(name: &str) -> Recipe {
    Recipe::named(name).unwrap()
}

#[test]
fn recipes_have_their_hashes() {
    for (name, hash) in [
        ("text", "4abfab68affa4a52"),
        ("web", "fa7d464945280209"),
        ("code", "0d0c82c2d76043c7"),
        ("topsig-1024", "9797cd53eba7180b"),
    ] {
        assert_eq!(named(name).hash(), hash, "recipe {name}");
    }
}

#[test]
fn text_has_its_bits() {
    assert_eq!(
        signature(&named("text"), ENGLISH),
        "c5151d8a434b317a13a004b7ba38ba2eb8ecbe530b23e560bd5f41e22049492f"
    );
    assert_eq!(
        signature(&named("text"), EDITED),
        "c5051d8a434b11fa13a004879838382eb8c8be570b27e560bc5141c20049490e"
    );
    assert_eq!(
        signature(&named("text"), MANY_SCRIPTS),
        "75030f4a1b2a231751fc00004840b00abdb961854a80b2f5718c09229da98d00"
    );
    assert_eq!(
        signature(&named("text"), "two words"),
        "c6a748cef3b578557383f8a65c3a924d9ae996124c5d9c7fa6f7bae0635ea224"
    );
}

#[test]
fn web_has_its_bits() {
    let signer = Signer::new(named("web"), None).unwrap();
    let page = Document { media: Media::Html, ..Document::new("page", HTML) };
    let signed = signer.sign(&page, &mut Scratch::default());
    assert_eq!(signed[0].signature.to_string(), "8551822f3b7395ee");
    assert_eq!(signature(&named("web"), ENGLISH), "4345831b75e2d93e");
}

#[test]
fn code_has_its_bits() {
    assert_eq!(
        signature(&named("code"), CODE),
        "00d0c0481923cb4181561711a1331ca73a2a50816078a08182214be40132e88c"
    );
}

/// Statistics of the two stories, and TopSig of one of them.
#[test]
fn topsig_has_its_bits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("terms");
    let recipe = named("topsig-1024");
    let extractor = Extractor::new(&recipe.features).unwrap();
    let (mut buffers, mut counts, mut terms) =
        (Buffers::default(), Counts::default(), TermCounts::default());
    for text in [ENGLISH, MANY_SCRIPTS, CODE, include_str!("../examples/stories/orchard.txt")] {
        extractor.count(text, &mut buffers, &mut counts);
        terms.add(&counts);
    }
    let mut collector = TermCollector::new(1 << 20, folder.path());
    collector.add(&terms).unwrap();
    collector.finish(&path, &recipe.features).unwrap();
    let statistics = TermStatistics::open(&path).unwrap();
    assert_eq!(statistics.fingerprint(), "2eaca19c938ba877");
    let sign = |recipe: Recipe| {
        let signer = Signer::new(recipe, Some(statistics.clone())).unwrap();
        signer.sign_text(ENGLISH, &mut Scratch::default()).unwrap().signature.to_string()
    };
    assert_eq!(
        sign(recipe.clone()),
        "98160598a1958b3f89082fd328a82240204e9b8ca2d94dfe5080684716c81b6a23511cf18a433577d60f919aa853746a0b689e56964d642b0c9d8590983d1093d39a8029ec50a50ca7cabcea9a70e0023c4b37a6098c8e0c1ebfa111057bb654e3c5714e544436ce233d61a5fe925137ec20c4d40d89900833e3e9c980c3245f"
    );
    let mut tf_idf = Recipe { weight: Weight::TfIdf, ..recipe };
    tf_idf.signature.kind = SignatureKind::SimHash;
    tf_idf.signature.bits = 64;
    assert_eq!(sign(tf_idf), "c344831b15f3d97e");
}

#[test]
fn other_settings_have_their_bits() {
    let mut recipe = named("text");
    recipe.signature.bits = 64;
    recipe.features.hash = FeatureHash { function: HashFunction::Murmur3, bits: 64, seed: 0 };
    assert_eq!(signature(&recipe, ENGLISH), "d8bc13e9a0dec2e7");
    recipe.signature.bits = 192;
    recipe.features.hash = FeatureHash { function: HashFunction::Murmur3, bits: 128, seed: 7 };
    recipe.features.stop_words = Some("en".into());
    recipe.features.stem = Some("en".into());
    recipe.weight = Weight::LogCount;
    assert_eq!(signature(&recipe, ENGLISH), "0c408f0e68a4c1460426c44f9dc488a70e8304d167914e87");
    recipe.features.hash = FeatureHash { function: HashFunction::Xxh3, bits: 128, seed: 7 };
    recipe.features.shingle.unit = lookalike::features::shingles::Unit::Characters;
    recipe.features.shingle.length = 5;
    recipe.signature.kind = SignatureKind::TopSig;
    assert_eq!(signature(&recipe, ENGLISH), "cf7c605460af8f07416ebcd4113dd2d2f4f130bc108c92c6");
}

#[test]
fn margins_and_passages_have_their_values() {
    let mut recipe = named("text");
    recipe.signature.bits = 64;
    recipe.passages = Some(Passages { from: 40, to: 80 });
    let signer = Signer::new(recipe, None).unwrap().with_margins();
    let signed = signer.sign(&Document::new("story", ENGLISH), &mut Scratch::default());
    let passages: Vec<_> = signed.iter().map(|signed| signed.passage.clone().unwrap()).collect();
    assert_eq!(format!("{passages:?}"), "[0..236, 236..497, 497..816]");
    assert_eq!(signed[0].signature.to_string(), "85401b8a03cb11ea");
    assert_eq!(
        format!("{:?}", &signed[0].margins.as_ref().unwrap()[..16]),
        "[73, 73, 109, 73, 182, 255, 255, 182, 109, 109, 73, 73, 109, 0, 73, 36]"
    );
}

/// What `numpy.packbits` makes of known bits; see `tests/fixtures/make.py`.
#[test]
fn numpy_and_we_agree_on_the_order_of_bits() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/packbits.npy");
    let file = lookalike::SignatureFile::open(path.as_ref()).unwrap();
    assert_eq!(file.signatures().bits(), 72);
    assert_eq!(file.signatures().get(0).to_string(), "800000000000000001");
    assert_eq!(file.signatures().get(1).to_string(), "0123456789abcdefff");
}
