// Readable names: labels that some response has brought, else the name without its underscores.

const labels = { entity: new Map(), relation: new Map() };

function readable(name) {
  return name.replaceAll("_", " ").trim() || name;
}

/** Remembers a label; kind is "entity" or "relation". */
export function learn(kind, name, label) {
  if (name && label && label !== name) labels[kind].set(name, label);
}

/** Remembers the labels of facts: head_label, relation_label, tail_label. */
export function learnFacts(facts) {
  for (const fact of facts) {
    learn("entity", fact.head, fact.head_label);
    learn("entity", fact.tail, fact.tail_label);
    learn("relation", fact.relation, fact.relation_label);
  }
}

/** Remembers the labels that an explanation brings. */
export function learnExplanation(explanation) {
  for (const [name, label] of Object.entries(explanation.entity_labels ?? {})) learn("entity", name, label);
  for (const [name, label] of Object.entries(explanation.relation_labels ?? {})) learn("relation", name, label);
}

/** Returns an entity's name for people. */
export const entityName = (name) => labels.entity.get(name) ?? readable(name);

/** Returns a relation's name for people. */
export const relationName = (name) => labels.relation.get(name) ?? readable(name);

/** Returns a name for people; kind is "entity" or "relation". */
export const nameOf = (kind, name) => (kind === "relation" ? relationName(name) : entityName(name));

/** Returns a relation as it stands within a sentence: a capital at its beginning is made small. */
export function relationInSentence(name) {
  const shown = relationName(name);
  return /^[A-Z][a-z]/.test(shown) ? shown[0].toLowerCase() + shown.slice(1) : shown;
}
