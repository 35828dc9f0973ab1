SELECT
  "pairs"."item",
  COUNT(*) AS "persons"
FROM (
  SELECT DISTINCT
    "events"."place" COLLATE C AS "item",
    "events"."user" COLLATE C AS "person"
  FROM (
    SELECT
      CASE
        WHEN "marked"."several lines"
        THEN ERROR('several lines')
        ELSE "marked"."place"
      END AS "place",
      CASE
        WHEN "marked"."several lines"
        THEN ERROR('several lines')
        ELSE "marked"."user"
      END AS "user"
    FROM (
      SELECT
        "rows"."place",
        "rows"."user",
        CONTAINS(CONCAT("rows"."user", "rows"."place"), CHR(10))
        OR CONTAINS(CONCAT("rows"."user", "rows"."place"), CHR(13)) AS "several lines"
      FROM READ_CSV(
        '/data/events.csv',
        auto_detect = FALSE,
        header = TRUE,
        delim = ',',
        quote = '"',
        escape = '"',
        compression = 'uncompressed',
        columns = {'user': 'VARCHAR', 'place': 'VARCHAR'}
      ) AS "rows"
    ) AS "marked"
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
