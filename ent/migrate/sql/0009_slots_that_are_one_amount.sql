ALTER TABLE "slot_types" ADD COLUMN "unified" boolean NOT NULL DEFAULT false;
UPDATE "slot_types" SET "unified" = true WHERE "kind" = 'unified';
