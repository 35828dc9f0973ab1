SELECT
  "pairs"."item",
  COUNT(*) AS "persons"
FROM (
  SELECT DISTINCT
    "events"."place" COLLATE C AS "item",
    "events"."user" COLLATE C AS "person"
  FROM (
    SELECT
      "lines"."place" AS "place",
      CASE
        WHEN JSON_TYPE("lines"."user") = 'VARCHAR'
        AND STARTS_WITH(JSON_EXTRACT_STRING("lines"."user", '$'), '')
        THEN 'text:' || JSON_EXTRACT_STRING("lines"."user", '$')
        WHEN JSON_TYPE("lines"."user") = 'VARCHAR'
        THEN JSON_EXTRACT_STRING("lines"."user", '$')
        WHEN REGEXP_MATCHES(CAST("lines"."user" AS TEXT), '^-?[0-9]+$')
        THEN 'number:' || CAST("lines"."user" AS TEXT)
        WHEN JSON_TYPE("lines"."user") = 'BOOLEAN'
        THEN 'boolean:' || CAST("lines"."user" AS TEXT)
      END AS "user"
    FROM READ_JSON(
      '/data/events.jsonl',
      format = 'newline_delimited',
      compression = 'uncompressed',
      columns = {'place': 'VARCHAR', 'user': 'JSON'}
    ) AS "lines"
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
