//! All custom resource definitions, in a stable order.

use std::borrow::Cow;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps,
};
use kube::{CustomResourceExt, Resource, core::schema::StructuralSchemaRewriter};
use schemars::{JsonSchema, generate::SchemaSettings};

use crate::{
    frrk8s, multinetwork, openperouter,
    schema::{AbsentNotNull, AnyKeys, KnownFormats, Reflow, WithoutRules},
    selvedge, tcaas,
};

/// One kind that Selvedge serves. Its definition is generated on demand.
#[derive(Clone, Debug)]
pub struct Served {
    /// Group of the kind.
    pub group: Cow<'static, str>,
    /// Name of the kind.
    pub kind: Cow<'static, str>,
    make: fn() -> CustomResourceDefinition,
}

impl Served {
    /// A kind that users write.
    pub(crate) fn by_people<K>() -> Self
    where
        K: Resource<DynamicType = ()> + CustomResourceExt + JsonSchema,
    {
        Self {
            group: K::group(&()),
            kind: K::kind(&()),
            make: definition::<K>,
        }
    }

    /// A kind that only Selvedge writes.
    pub(crate) fn by_machines<K>() -> Self
    where
        K: Resource<DynamicType = ()> + CustomResourceExt + JsonSchema,
    {
        Self {
            make: machine_written::<K>,
            ..Self::by_people::<K>()
        }
    }

    /// The definition of the kind.
    pub fn definition(&self) -> CustomResourceDefinition {
        (self.make)()
    }
}

/// Every kind that Selvedge serves.
pub fn served() -> Vec<Served> {
    [
        tcaas::served(),
        openperouter::served(),
        frrk8s::served(),
        multinetwork::served(),
        selvedge::served(),
    ]
    .concat()
}

/// The definitions of every kind that Selvedge serves.
pub fn all() -> Vec<CustomResourceDefinition> {
    served().iter().map(Served::definition).collect()
}

/// The definition of one kind, with a schema that a real API server takes without a warning.
///
/// The derived `K::crd()` differs in three ways: it lets every optional field be `null`, it puts a type's description in place of the
/// field's, and it names number formats that Kubernetes does not know.
pub(crate) fn definition<K: CustomResourceExt + JsonSchema>() -> CustomResourceDefinition {
    with_schema::<K>(structural())
}

/// The definition of a kind that only Selvedge writes. It has no CEL rules: its lists and maps have no upper bounds, so
/// that the API server would reject rules as too expensive. The Rust types validate everything before it is written.
pub(crate) fn machine_written<K: CustomResourceExt + JsonSchema>() -> CustomResourceDefinition {
    with_schema::<K>(structural().with_transform(WithoutRules))
}

fn structural() -> SchemaSettings {
    SchemaSettings::openapi3()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .with_transform(AbsentNotNull)
        .with_transform(AnyKeys)
        .with_transform(KnownFormats)
        .with_transform(StructuralSchemaRewriter)
        .with_transform(Reflow)
}

fn with_schema<K: CustomResourceExt + JsonSchema>(
    settings: SchemaSettings,
) -> CustomResourceDefinition {
    let mut definition = K::crd();
    let schema = settings.into_generator().into_root_schema_for::<K>();
    let mut schema: JSONSchemaProps =
        serde_json::from_value(schema.to_value()).expect("a derived schema is an OpenAPI schema");
    schema.title = None;
    let about = schema
        .properties
        .as_ref()
        .and_then(|properties| properties.get("spec")?.description.clone());
    if about.is_some() {
        schema.description = about;
    }
    for version in &mut definition.spec.versions {
        if let Some(validation) = &mut version.schema {
            validation.open_api_v3_schema = Some(schema.clone());
        }
    }
    definition
}

#[cfg(test)]
mod tests;
