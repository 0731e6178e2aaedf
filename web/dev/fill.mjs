// Values for fields that the mock does not play, so that a new field of the
// schema does not break it.
import { defaultFieldResolver, isEnumType, isLeafType, isListType, isNonNullType } from "graphql";

const scalars = { Int: 0, Int64: 0, Float: 0, Boolean: false, Time: "2026-01-02T03:04:05Z", Slots: {}, StringMap: {} };

function anything(type) {
  if (!isNonNullType(type)) return null;
  const inner = type.ofType;
  if (isListType(inner)) return [];
  if (isEnumType(inner)) return inner.getValues()[0]?.value;
  return isLeafType(inner) ? (scalars[inner.name] ?? "") : {};
}

export const fieldResolver = (source, args, context, info) =>
  defaultFieldResolver(source, args, context, info) ?? anything(info.returnType);
