// Package problem defines the errors that people see: a class that programs can distinguish, a
// message, and, if they apply, the wrong field and the limit. Services create such errors where the
// reason is known; the REST and GraphQL edges convert every error to a Problem with From.
package problem
