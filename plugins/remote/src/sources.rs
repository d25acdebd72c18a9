//! Which of object_store's clients serves a URL, made from the services' own variables.

use std::{
    collections::HashMap,
    str::FromStr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use forebay_core::{Error, Result, shown};
use object_store::{
    ClientOptions, ObjectStore, RetryConfig,
    aws::AmazonS3Builder,
    azure::MicrosoftAzureBuilder,
    client::{HttpClient, HttpConnector},
    gcp::GoogleCloudStorageBuilder,
    http::HttpBuilder,
    list::PaginatedListStore,
    path::Path,
};

use crate::{
    place::Place,
    settings::Settings,
    wire::{Connect, Made, plain},
};

/// Where one object is: a client, and the object's path there.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) client: Arc<dyn ObjectStore>,
    pub(crate) path: Path,
    /// The same client, where it lists objects.
    pub(crate) lists: Option<Arc<dyn PaginatedListStore>>,
}

/// A client of a bucket, as what reads and as what lists.
type Bucket = (Arc<dyn ObjectStore>, Arc<dyn PaginatedListStore>);

/// The clients made so far: one for each bucket, and one for all servers of http.
pub(crate) struct Sources {
    options: ClientOptions,
    variables: Vec<(String, String)>,
    web: Mutex<Option<HttpClient>>,
    buckets: Mutex<HashMap<String, Bucket>>,
}

impl Sources {
    pub(crate) fn new(settings: &Settings) -> Self {
        // Only fails where the program chose another, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // Services are asked by https, unless somebody names an endpoint of plain http, who wants it.
        let options = ClientOptions::new()
            .with_allow_http(true)
            .with_timeout_disabled()
            .with_read_timeout(settings.timeout)
            .with_connect_timeout(settings.timeout.min(Duration::from_secs(10)));
        let variables = settings.variables.clone();
        Self { options, variables, web: Mutex::new(None), buckets: Mutex::new(HashMap::new()) }
    }

    /// Where the object of this URL is.
    pub(crate) fn of(&self, url: &str) -> Result<Source> {
        let place = Place::of(url)?;
        let found = if place.is_web() { self.web(url) } else { self.bucket(place) };
        found.map_err(|error| error.context("url", shown(url)))
    }

    fn web(&self, url: &str) -> Result<Source> {
        // What a URL may be and a request's may not, object_store would panic at.
        let parsed = reqwest::Url::parse(url).map_err(|error| Error::invalid(format!("the URL: {error}")))?;
        let sent = parsed.as_str().parse::<http::Uri>();
        sent.map_err(|error| Error::invalid(format!("the URL: {error}")))?;
        let made = {
            let mut web = self.web.lock().unwrap_or_else(PoisonError::into_inner);
            match &*web {
                Some(made) => made.clone(),
                None => web.insert(Connect.connect(&self.options).map_err(unusable)?).clone(),
            }
        };
        // The URL is the client's root, so that it goes out as it was written, with its query.
        let client =
            HttpBuilder::new().with_url(url).with_http_connector(Made(made)).with_retry(once()).build();
        Ok(Source { client: Arc::new(client.map_err(unusable)?), path: Path::default(), lists: None })
    }

    fn bucket(&self, place: Place<'_>) -> Result<Source> {
        let path = Path::parse(place.path).map_err(|error| Error::invalid(plain(&error)))?;
        let root = place.root();
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let (client, lists) = match buckets.get(&root) {
            Some(client) => client.clone(),
            None => {
                let client = self.client(place.scheme, &root)?;
                buckets.insert(root, client.clone());
                client
            }
        };
        Ok(Source { client, path, lists: Some(lists) })
    }

    fn client(&self, scheme: &str, root: &str) -> Result<Bucket> {
        let options = self.options.clone();
        Ok(match scheme {
            "s3" | "s3a" => {
                let builder = AmazonS3Builder::new().with_url(root).with_client_options(options);
                let builder = self.set("AWS_", builder, AmazonS3Builder::with_config)?;
                both(builder.with_retry(once()).with_http_connector(Connect).build().map_err(unusable)?)
            }
            "gs" => {
                let builder = GoogleCloudStorageBuilder::new().with_url(root).with_client_options(options);
                let builder = self.set("GOOGLE_", builder, GoogleCloudStorageBuilder::with_config)?;
                both(builder.with_retry(once()).with_http_connector(Connect).build().map_err(unusable)?)
            }
            _ => {
                let builder = MicrosoftAzureBuilder::new().with_url(root).with_client_options(options);
                let builder = self.set("AZURE_", builder, MicrosoftAzureBuilder::with_config)?;
                both(builder.with_retry(once()).with_http_connector(Connect).build().map_err(unusable)?)
            }
        })
    }

    /// Hands a service's variables to its builder; those it does not know are other programs', and empty ones are none.
    fn set<B, K: FromStr>(&self, service: &str, builder: B, with: fn(B, K, String) -> B) -> Result<B> {
        let mut builder = builder;
        for (name, value) in self.variables.iter().filter(|(name, _)| name.starts_with(service)) {
            let (Ok(key), value) = (name.to_ascii_lowercase().parse(), value.trim()) else { continue };
            if value.is_empty() {
                continue;
            }
            // No header takes them. A key of Google's is JSON, on several lines.
            if value.contains(char::is_control) && !value.starts_with('{') {
                let error = Error::invalid("found a control character, as a line's end, within the value");
                return Err(error.context("variable", name));
            }
            builder = with(builder, key, value.to_owned());
        }
        Ok(builder)
    }
}

fn both<C: ObjectStore + PaginatedListStore>(client: C) -> Bucket {
    let client = Arc::new(client);
    (client.clone(), client)
}

/// One attempt: those that follow are made by [`fetch`](crate::fetch), which knows what has come.
fn once() -> RetryConfig {
    RetryConfig { max_retries: 0, ..RetryConfig::default() }
}

fn unusable(error: object_store::Error) -> Error {
    Error::invalid(format!("the store cannot be used: {}", plain(&error)))
}
