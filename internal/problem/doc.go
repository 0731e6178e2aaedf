// Package problem is how an error reaches a person: a class that programs can
// tell apart, a message, and where it applies the offending field and the
// limit. Services make such errors where the reason is known; the REST and
// GraphQL edges turn every error into a Problem with From.
package problem
