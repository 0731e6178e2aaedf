-- The operation special has a name on each kind of object, and write is write_files. On kinds where they meant nothing they are dropped.
UPDATE "roles" SET "permissions" = (
  SELECT coalesce(jsonb_object_agg("entity", "operations"), '{}')
  FROM (
    SELECT "entity", jsonb_agg("name" ORDER BY "position") AS "operations"
    FROM jsonb_each("roles"."permissions") AS "allows" ("entity", "list"),
      jsonb_array_elements_text("list") WITH ORDINALITY AS "each" ("operation", "position"),
      LATERAL (SELECT CASE
        WHEN "operation" NOT IN ('special', 'write') THEN "operation"
        WHEN "entity" = 'vfolder' AND "operation" = 'write' THEN 'write_files'
        WHEN "operation" = 'write' THEN NULL
        WHEN "entity" = 'session' THEN 'enter'
        WHEN "entity" = 'vfolder' THEN 'read_files'
        WHEN "entity" = 'user' THEN 'impersonate'
        WHEN "entity" = 'project' THEN 'manage_members'
        WHEN "entity" IN ('role', 'resource_group', 'volume') THEN 'grant'
        WHEN "entity" = 'object_storage' THEN 'transfer'
      END AS "name") AS "renamed"
    WHERE "name" IS NOT NULL
    GROUP BY "entity"
  ) AS "kinds"
) WHERE "permissions"::text ~ '"(special|write)"';
