// Package definition reads model-definition.yaml, the file in a model's folder that says how it is served,
// in the format of Backend.AI. Only its meaning is used: unknown fields are ignored, known ones are checked,
// and nothing of it reaches a shell unless the file itself asks for one.
package definition
