SELECT
  "pairs"."item",
  COUNT(*) AS "persons"
FROM (
  SELECT DISTINCT
    "events"."place" AS "item",
    "events"."user" AS "person"
  FROM READ_JSON(
    '/data/events.jsonl',
    format = 'newline_delimited',
    compression = 'uncompressed',
    columns = {'place': 'VARCHAR', 'user': 'VARCHAR'}
  ) AS "events"
  WHERE
    NOT "events"."place" IS NULL AND NOT "events"."user" IS NULL
) AS "pairs"
GROUP BY
  "pairs"."item"
ORDER BY
  "persons" DESC,
  "pairs"."item" ASC
LIMIT 201
